"""decide() has an answer to every situation, and its answers keep the promises."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings

from engine.decide.actions import (
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    RefreshPod,
    RejectForeign,
    RemoveSchedulingGate,
    RestoreDependents,
    RestoreLabels,
    StampExpiry,
    Wait,
    WriteRecord,
)
from engine.decide.record_codec import decode_record, encode_record
from engine.decide.rules import decide
from engine.decide.situation import (
    Pod,
    Situation,
    gate_position,
    is_finished,
    is_terminating,
    name_of,
    uid_of,
)
from tests.unit.decide.strategies import situations


def every_situation_has_an_answer_and_the_same_one_twice(situation: Situation) -> None:
    assert decide(situation) == decide(situation)


def nothing_is_done_to_what_belongs_to_another(situation: Situation) -> None:
    if situation.record is not None and situation.record.source == "nightly":
        assert isinstance(decide(situation), RejectForeign)


def only_our_own_pods_get_anything_and_no_other_that_may_run_goes(situation: Situation) -> None:
    """What is certain of a pod is its UID, whatever its labels say."""
    action = decide(situation)
    if isinstance(
        action,
        CreateDependents | RestoreDependents | RemoveSchedulingGate | RestoreLabels | StampExpiry,
    ):
        assert any(situation.is_ours(p) for p in _pods_with(situation, action.uid))
    if isinstance(action, DeletePod):
        assert any(
            situation.is_ours(pod) or gate_position(pod) is not None
            for pod in _pods_with(situation, action.uid)
        )
    if isinstance(action, WriteRecord) and action.record.open_attempt is not None:
        attempt = action.record.open_attempt
        pods = _pods_with(situation, attempt.uid)
        claimed_by_0_1 = any(not a.uid for a in situation.run_record.attempts)
        assert not pods or claimed_by_0_1 or any(map(situation.is_ours, pods))


def a_new_pod_never_joins_one_that_may_still_run(situation: Situation) -> None:
    if isinstance(decide(situation), CreatePod):
        lost = {a.uid for a in situation.run_record.attempts}
        assert all(
            is_finished(pod) or (is_terminating(pod) and uid_of(pod) in lost)
            for pod in filter(situation.is_ours, situation.observed.pods)
        )


def a_final_run_stays_as_it_is(situation: Situation) -> None:
    record = situation.record
    if record is None or record.spec_hash != situation.job.spec_hash or not record.state.is_final:
        return
    action = decide(situation)
    allowed = Done | DeletePod | RefreshPod | RejectForeign | RestoreLabels | StampExpiry | Wait
    assert isinstance(action, allowed)


def only_pods_that_are_there_are_deleted_ungated_or_given_dependents(situation: Situation) -> None:
    action = decide(situation)
    if isinstance(action, DeletePod | RemoveSchedulingGate | CreateDependents | RestoreDependents):
        assert (action.pod, action.uid) in [
            (name_of(pod), uid_of(pod)) for pod in situation.observed.pods
        ]


def only_a_recorded_pod_whose_dependents_exist_is_let_go(situation: Situation) -> None:
    action = decide(situation)
    if isinstance(action, RemoveSchedulingGate):
        attempt = situation.run_record.open_attempt
        assert attempt is not None
        assert attempt.uid == action.uid
        assert action.uid in situation.observed.dependents_ready
        assert action.uid not in situation.observed.secrets_missing


def every_record_that_is_written_can_be_read_back(situation: Situation) -> None:
    action = decide(situation)
    if isinstance(action, WriteRecord):
        written = action.record
        text = encode_record(written)
        assert encode_record(decode_record(written.key, text, written.version)) == text
        numbers = [attempt.number for attempt in written.attempts]
        assert numbers == sorted(set(numbers))
        assert written.source == "default"


def a_record_that_is_written_is_not_written_again_at_once(situation: Situation) -> None:
    """The cluster as it is, the record as just written: never the very same write once more."""
    action = decide(situation)
    if isinstance(action, WriteRecord):
        assert decide(replace(situation, record=action.record)) != action


def a_record_that_was_refused_is_not_written_before_it_is_time(situation: Situation) -> None:
    rejection, record = situation.observed.rejection, situation.record
    version = record.version if record is not None else ""
    if rejection is None or rejection.record_version != version:
        return
    if situation.now < rejection.retry_at:
        assert not isinstance(decide(situation), WriteRecord | CreatePod)


def _pods_with(situation: Situation, uid: str) -> list[Pod]:
    return [pod for pod in situation.observed.pods if uid_of(pod) == uid]


PROMISES: tuple[Callable[[Situation], None], ...] = (
    every_situation_has_an_answer_and_the_same_one_twice,
    nothing_is_done_to_what_belongs_to_another,
    only_our_own_pods_get_anything_and_no_other_that_may_run_goes,
    a_new_pod_never_joins_one_that_may_still_run,
    a_final_run_stays_as_it_is,
    only_pods_that_are_there_are_deleted_ungated_or_given_dependents,
    only_a_recorded_pod_whose_dependents_exist_is_let_go,
    every_record_that_is_written_can_be_read_back,
    a_record_that_is_written_is_not_written_again_at_once,
    a_record_that_was_refused_is_not_written_before_it_is_time,
)


@settings(max_examples=250)
@given(situations())
def test_every_situation_has_an_answer_that_keeps_every_promise(situation: Situation) -> None:
    for promise in PROMISES:
        promise(situation)
