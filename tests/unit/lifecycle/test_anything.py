"""decide() has an answer to every state, and its answers keep the promises."""

from collections.abc import Callable

from hypothesis import given, settings
from msgspec.structs import replace

from engine.lifecycle.actions import (
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    RefreshPod,
    RemoveSchedulingGate,
    ReportError,
    UpdatePod,
    Wait,
    WriteRecord,
)
from engine.lifecycle.record_codec import decode_record, encode_record
from engine.lifecycle.rules import decide
from engine.lifecycle.state import (
    LifecycleState,
    Pod,
    gate_position,
    is_finished,
    is_terminating,
    name_of,
    uid_of,
)
from engine.status.outcome import Reason
from tests.unit.lifecycle.strategies import lifecycle_states


def every_situation_has_an_answer_and_the_same_one_twice(state: LifecycleState) -> None:
    assert decide(state) == decide(state)


def nothing_is_done_to_what_belongs_to_another(state: LifecycleState) -> None:
    if state.record is not None and state.record.source == "nightly":
        assert isinstance(decide(state), ReportError)


def only_our_own_pods_get_anything_and_no_other_that_may_run_goes(state: LifecycleState) -> None:
    """What is certain of a pod is its UID, whatever its labels say."""
    action = decide(state)
    if isinstance(
        action,
        CreateDependents | RemoveSchedulingGate | UpdatePod,
    ):
        assert any(state.is_owned(p) for p in _pods_with(state, action.uid))
    if isinstance(action, DeletePod):
        assert any(
            state.is_owned(pod) or gate_position(pod) is not None
            for pod in _pods_with(state, action.uid)
        )
    if isinstance(action, WriteRecord) and action.record.open_attempt is not None:
        attempt = action.record.open_attempt
        pods = _pods_with(state, attempt.uid)
        assert not pods or any(map(state.is_owned, pods))


def a_new_pod_never_joins_one_that_may_still_run(state: LifecycleState) -> None:
    if isinstance(decide(state), CreatePod):
        lost = {a.uid for a in state.run_record.attempts}
        # Kubernetes binds no pod to a node that is being deleted.
        assert all(
            is_finished(pod)
            or (is_terminating(pod) and (uid_of(pod) in lost or "nodeName" not in pod["spec"]))
            for pod in filter(state.is_owned, state.observed.pods)
        )


def a_final_run_stays_as_it_is(state: LifecycleState) -> None:
    record = state.record
    if record is None or record.spec_hash != state.job.spec_hash or not record.state.is_final:
        return
    if record.reason is Reason.SUPERSEDED:  # its revision is asked for once more
        return
    action = decide(state)
    allowed = Done | DeletePod | RefreshPod | ReportError | UpdatePod | Wait
    if isinstance(action, WriteRecord):  # the number of a pod that was given up, and no more
        now = action.record
        assert (now.state, now.reason, now.run) == (record.state, record.reason, record.run)
        assert now.attempts == record.attempts
        return
    assert isinstance(action, allowed)


def only_pods_that_are_there_are_deleted_ungated_or_given_dependents(state: LifecycleState) -> None:
    action = decide(state)
    if isinstance(action, DeletePod | RemoveSchedulingGate | CreateDependents):
        assert (action.pod, action.uid) in [
            (name_of(pod), uid_of(pod)) for pod in state.observed.pods
        ]


def only_a_recorded_pod_whose_dependents_exist_is_let_go(state: LifecycleState) -> None:
    action = decide(state)
    if isinstance(action, RemoveSchedulingGate):
        attempt = state.run_record.open_attempt
        assert attempt is not None
        assert attempt.uid == action.uid
        assert action.uid in state.observed.dependents_ready
        assert action.uid not in state.observed.secrets_missing


def every_record_that_is_written_can_be_read_back(state: LifecycleState) -> None:
    action = decide(state)
    if isinstance(action, WriteRecord):
        written = action.record
        text = encode_record(written)
        assert encode_record(decode_record(written.key, text, written.version)) == text
        numbers = [attempt.number for attempt in written.attempts]
        assert numbers == sorted(set(numbers))
        assert written.source == "default"


def a_record_that_is_written_is_not_written_again_at_once(state: LifecycleState) -> None:
    """The cluster as it is, the record as just written: never the very same write once more."""
    action = decide(state)
    if isinstance(action, WriteRecord):
        assert decide(replace(state, record=action.record)) != action


def a_record_that_was_refused_is_not_written_before_it_is_time(state: LifecycleState) -> None:
    rejection, record = state.observed.rejection, state.record
    version = record.version if record is not None else ""
    if rejection is None or rejection.record_version != version:
        return
    if state.now < rejection.retry_at:
        assert not isinstance(decide(state), WriteRecord | CreatePod)


def _pods_with(state: LifecycleState, uid: str) -> list[Pod]:
    return [pod for pod in state.observed.pods if uid_of(pod) == uid]


PROMISES: tuple[Callable[[LifecycleState], None], ...] = (
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
@given(lifecycle_states())
def test_every_situation_has_an_answer_that_keeps_every_promise(state: LifecycleState) -> None:
    for promise in PROMISES:
        promise(state)
