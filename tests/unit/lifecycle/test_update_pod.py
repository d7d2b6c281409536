"""A pod is kept as its spec says by now: its TTL, hold, labels, annotations and time to expire."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.api.model import Job
from engine.lifecycle.actions import Action, DeletePod, Done, UpdatePod, Wait
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.refs import GATE
from engine.status.outcome import Reason, State
from engine.transform.set_ttl_annotation import kept_mark, kept_metadata, set_ttl_annotation
from engine.wellknown import (
    DISRUPTION,
    EXPIRES_AT,
    HOLD,
    LAST_APPLIED,
    MANAGED_BY,
    NOT_EVICTED,
    RUN,
    TTL,
)
from tests.unit.builders import context, document, load_document, make_config, make_job
from tests.unit.lifecycle.states import (
    JOB,
    NOW,
    act,
    attempt,
    finished,
    make_state,
    record,
)
from tests.unit.pods import UID, ended, job_pod, running

BOTH = make_job(ttlAfterFinished={"success": "10m", "failure": "24h"})
POD = f"build-{BOTH.run}-1"


def done_pod(phase: str = "Succeeded", **annotations: str) -> dict[str, Any]:
    pod = kept_pod(BOTH, phase=phase)
    pod["metadata"]["annotations"] |= annotations
    return pod


def stamped(action: Action) -> str | None:
    assert isinstance(action, UpdatePod)
    assert (action.pod, action.uid, action.labels) == (POD, UID, {})
    assert action.fields == (EXPIRES_AT,)
    return action.annotations[EXPIRES_AT]


@pytest.mark.parametrize(
    ("reason", "phase", "at"),
    [
        (Reason.SUCCEEDED, "Succeeded", "2026-01-01T12:10:15.000Z"),
        (Reason.SCRIPT_FAILED, "Failed", "2026-01-02T12:00:15.000Z"),
        (Reason.DEADLINE_EXCEEDED, "Failed", "2026-01-02T12:00:15.000Z"),
    ],
)
def test_the_time_counts_from_the_recorded_end_and_depends_on_the_outcome(
    reason: Reason, phase: str, at: str
) -> None:
    assert stamped(act(BOTH, finished(reason, job=BOTH), done_pod(phase))) == at


def test_a_pod_whose_phase_has_yet_to_follow_its_end_gets_its_time_as_well() -> None:
    pod = kept_pod(BOTH, ended(0), phase="Running")
    action = act(BOTH, finished(job=BOTH), pod)
    assert stamped(action) == "2026-01-01T12:10:15.000Z"
    going_on = job_pod(BOTH, ended(0), others={"redis": running()})
    assert not isinstance(act(BOTH, finished(job=BOTH), going_on), UpdatePod)


def test_an_update_that_was_refused_is_not_asked_for_again_at_once() -> None:
    state = make_state(BOTH, finished(job=BOTH), done_pod())
    state.observed.given_up.add(UID)
    assert decide(state) == Done()


def test_a_pod_that_has_not_ended_gets_no_time_to_expire() -> None:
    running_pod = kept_pod(BOTH, running())
    known = record(attempt(started_at=NOW), state=State.RUNNING)
    assert isinstance(act(BOTH, known, running_pod), Wait)
    stuck = finished(Reason.START_TIMEOUT, job=BOTH)
    waits = kept_pod(BOTH, phase="Pending", activeDeadlineSeconds=99_999)
    assert isinstance(act(BOTH, stuck, waits), DeletePod)


def test_a_record_that_does_not_say_when_its_attempt_ended_gives_no_time_to_expire() -> None:
    over = finished(job=BOTH)
    known = replace(over, attempts=(replace(over.attempts[0], finished_at=None),))
    assert act(BOTH, known, done_pod()) == Done()


def test_a_pod_that_has_its_time_is_left_alone() -> None:
    pod = done_pod(**{EXPIRES_AT: "2030-01-01T00:00:00Z"})
    assert act(BOTH, finished(job=BOTH), pod) == Done()


def test_without_a_ttl_for_this_outcome_nothing_is_written() -> None:
    only = make_job(ttlAfterFinished={"failure": "24h"})
    assert act(only, finished(job=only), job_pod(only, phase="Succeeded")) == Done()
    assert act(JOB, finished(), job_pod(JOB, phase="Succeeded")) == Done()


def test_a_pod_whose_mark_another_hand_took_off_is_left_as_it_is() -> None:
    pod = done_pod()
    del pod["metadata"]["annotations"]
    assert act(BOTH, finished(job=BOTH), pod) == Done()


def test_a_pod_that_is_being_deleted_needs_no_time() -> None:
    pod = done_pod()
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:20Z"
    assert act(BOTH, finished(job=BOTH), pod) == Done()


def test_a_pod_that_the_record_does_not_know_is_not_judged_by_it() -> None:
    pod = done_pod()
    pod["metadata"]["uid"] = "another"
    assert act(BOTH, finished(job=BOTH), pod) == Done()


def kept_pod(job: Job, *containers: Any, phase: str = "Running", **spec: Any) -> dict[str, Any]:
    """The pod of `job` as the engine makes it."""
    pod = job_pod(job, *containers, phase=phase)
    kept = kept_metadata(job)
    pod["metadata"]["labels"] |= kept["labels"]
    pod["metadata"]["annotations"] = {**kept["annotations"], LAST_APPLIED: kept_mark(kept)}
    pod["spec"] |= spec
    return pod


def with_metadata(**metadata: dict[str, str]) -> Job:
    own = document()
    own["metadata"] |= metadata
    return load_document(own).jobs[0]


STATES = [
    (record(attempt(started_at=NOW), state=State.RUNNING), "Running"),
    (finished(), "Succeeded"),
]


@pytest.mark.parametrize(("known", "phase"), STATES, ids=["running", "finished"])
def test_a_hold_and_a_ttl_are_written_onto_the_pod_and_taken_off_again(
    known: Record, phase: str
) -> None:
    held, at = make_job(ttl="2d", hold=True), running() if phase == "Running" else ended(0)
    action = act(held, known, kept_pod(JOB, at, phase=phase))
    assert isinstance(action, UpdatePod)
    assert action.fields == (TTL, HOLD)
    assert action.annotations[TTL] == "172800"
    again = act(JOB, known, kept_pod(held, at, phase=phase))
    assert isinstance(again, UpdatePod)
    assert (again.annotations[TTL], again.annotations[HOLD]) == ("4500", None)
    assert not isinstance(act(held, known, kept_pod(held, at, phase=phase)), UpdatePod)


def test_a_gated_pod_that_goes_is_not_updated_before() -> None:
    gated = kept_pod(JOB, phase="Pending", schedulingGates=[{"name": GATE}])
    over = finished(Reason.CANCELLED)
    assert isinstance(act(make_job(hold=True), over, gated), DeletePod)


def test_labels_and_annotations_of_the_spec_are_changed_and_those_of_others_stay() -> None:
    before = with_metadata(labels={"team": "web", "tier": "a"}, annotations={"a.example/b": "1"})
    after = with_metadata(labels={"team": "api"}, annotations={"c": "2"})
    pod = kept_pod(before, ended(0), phase="Succeeded")
    pod["metadata"]["labels"]["theirs"] = "x"
    action = act(after, finished(), pod)
    assert isinstance(action, UpdatePod)
    assert action.labels == {"team": "api", "tier": None}
    del action.annotations[LAST_APPLIED]  # type: ignore[attr-defined]
    assert action.annotations == {"c": "2", "a.example/b": None}


def test_what_another_hand_wrote_stays_until_the_spec_changes() -> None:
    pod = kept_pod(JOB, ended(0), phase="Succeeded")
    pod["metadata"]["annotations"] |= {TTL: "1", HOLD: "true"}
    assert act(JOB, finished(), pod) == Done()
    action = act(make_job(ttl="2d"), finished(), pod)
    assert isinstance(action, UpdatePod)
    assert action.fields == (TTL,)


def test_a_mark_that_names_the_engines_own_labels_removes_none_of_them() -> None:
    pod = kept_pod(JOB, ended(0), phase="Succeeded")
    forged = f"labels/{RUN}=1 labels/{MANAGED_BY} annotations/jobs.engine/ttl-from=2 x y/z"
    pod["metadata"]["annotations"] |= {LAST_APPLIED: forged, "jobs.engine/ttl-from": "scheduling"}
    action = act(JOB, finished(), pod)
    assert isinstance(action, UpdatePod)
    assert (action.labels, [*action.annotations]) == ({}, [TTL, LAST_APPLIED])


def test_a_time_to_expire_follows_its_spec_and_goes_with_it() -> None:
    known, pod = finished(job=BOTH), kept_pod(BOTH, ended(0), phase="Succeeded")
    first = act(BOTH, known, pod)
    assert isinstance(first, UpdatePod)
    pod["metadata"]["annotations"] |= first.annotations
    assert act(BOTH, known, pod) == Done()
    longer = act(make_job(ttlAfterFinished={"success": "20m"}), known, pod)
    assert isinstance(longer, UpdatePod)
    assert longer.annotations[EXPIRES_AT] == "2026-01-01T12:20:15.000Z"
    none = act(JOB, known, pod)
    assert isinstance(none, UpdatePod)
    assert none.annotations[EXPIRES_AT] is None


def test_a_shorter_timeout_reaches_the_running_pod_and_a_longer_one_waits() -> None:
    known, shorter = record(attempt(started_at=NOW), state=State.RUNNING), make_job(timeout="5m")
    pod = kept_pod(shorter, running(), activeDeadlineSeconds=3600)
    action = act(shorter, known, pod)
    assert isinstance(action, UpdatePod)
    assert (action.deadline, action.fields) == (300, ("activeDeadlineSeconds",))
    pod["spec"]["activeDeadlineSeconds"] = 300
    assert isinstance(act(shorter, known, pod), Wait)
    assert not isinstance(
        act(JOB, known, kept_pod(JOB, running(), activeDeadlineSeconds=9)), UpdatePod
    )


def test_a_timeout_that_the_engine_keeps_is_not_written_onto_the_pod() -> None:
    off = make_config("features: {activeDeadlineSeconds: false}")
    own = make_job(timeout="5m", config=off)
    pod = kept_pod(own, running(), activeDeadlineSeconds=3600)
    assert isinstance(act(own, record(attempt(started_at=NOW), state=State.RUNNING), pod), Wait)


def test_a_finished_pod_gets_no_deadline() -> None:
    shorter = make_job(timeout="5m")
    pod = kept_pod(shorter, ended(0), phase="Succeeded", activeDeadlineSeconds=3600)
    assert act(shorter, finished(), pod) == Done()


def test_a_protection_that_is_asked_for_or_taken_back_reaches_the_running_pod_alone() -> None:
    plain, protected = make_job(), make_job(disruption="protect")
    for before, now, label in ((plain, protected, "protect"), (protected, plain, None)):
        made = set_ttl_annotation({**job_pod(before, running()), "kind": "Pod"}, context(before))
        state = make_state(before, record(attempt(job=before), job=before), made)
        assert not isinstance(decide(state), UpdatePod)
        state = make_state(now, record(attempt(job=now), job=now), made)
        action = decide(state)
        assert isinstance(action, UpdatePod)
        assert action.labels == {DISRUPTION: label}
        assert {key: bool(value) for key, value in action.annotations.items()} == {
            LAST_APPLIED: True, **dict.fromkeys(NOT_EVICTED, label is not None)
        }  # fmt: skip
        changed = make_state(now, finished(job=now), {**made, "status": {"phase": "Succeeded"}})
        assert not isinstance(decide(changed), UpdatePod), "nobody evicts what is over"


def test_a_label_that_somebody_took_off_to_free_the_pod_stays_off() -> None:
    protected = make_job(disruption="protect")
    pod = {**job_pod(protected, running()), "kind": "Pod"}
    made = set_ttl_annotation(pod, context(protected))
    del made["metadata"]["labels"][DISRUPTION]
    known = record(attempt(job=protected), job=protected)
    assert not isinstance(decide(make_state(protected, known, made)), UpdatePod)
