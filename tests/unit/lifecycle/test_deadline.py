"""The timeout where `features.activeDeadlineSeconds` is off: the engine keeps it itself."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.api.model import Features, PullSettings
from engine.lifecycle.actions import CreatePod, DeletePod, RefreshPod, Wait, WriteRecord
from engine.lifecycle.rules import decide
from engine.status.outcome import Reason, State
from tests.unit.builders import make_config, make_job
from tests.unit.lifecycle.states import NOW, act, at, attempt, make_state, record, written
from tests.unit.pods import UID, ended, job_pod, running, waiting

CONFIG = make_config("features: {activeDeadlineSeconds: false}")
JOB = make_job(config=CONFIG, timeout="10s", startTimeout="1h")
POD = f"build-{JOB.run}-1"
OPEN = record(attempt(job=JOB), job=JOB)
OVERDUE, DUE_SOON = "2026-01-01T12:00:10Z", "2026-01-01T12:00:15Z"
PULLING = waiting("ErrImagePull", "connection refused")


def taken_up(at: str, main: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """The job's pod, which the kubelet took up at this time; NOW is 12:00:20."""
    return job_pod(JOB, main, startTime=at, **more)


def test_a_pod_without_a_deadline_is_ended_by_the_engine() -> None:
    pod = taken_up(OVERDUE, running())
    over = written(JOB, OPEN, pod)
    assert (over.state, over.reason) == (State.FAILED, Reason.DEADLINE_EXCEEDED)
    assert over.message == "ran longer than its timeout of 10s"
    assert over.finished_at == NOW
    assert act(JOB, over, pod) == DeletePod(POD, UID, None, "its attempt ended: DeadlineExceeded")


def test_the_engine_looks_again_when_the_time_is_over() -> None:
    """When it has run for two seconds, to write that down, and then at its deadline."""
    pod = taken_up(DUE_SOON, running())
    assert act(JOB, OPEN, pod, now=at(-9)) == Wait(at(-8))
    assert act(JOB, replace(OPEN, state=State.RUNNING), pod) == Wait(at(5))
    assert act(JOB, OPEN, taken_up(DUE_SOON, None)) == Wait(at(5))


def test_it_counts_from_when_the_kubelet_took_up_the_pod_whichever_engine_looks() -> None:
    """Neither from its creation nor from when an engine last took it up."""
    claimed = record(replace(attempt(job=JOB), claimed_at=NOW), job=JOB)
    assert written(JOB, claimed, taken_up(OVERDUE, running())).reason is Reason.DEADLINE_EXCEEDED
    assert act(JOB, OPEN, job_pod(JOB, None)) == Wait(at(3600 - 20))


def test_a_part_of_a_second_counts_as_a_whole_one() -> None:
    job = replace(JOB, timeout=10.001)
    assert act(job, replace(OPEN, state=State.RUNNING), taken_up(OVERDUE, running())) == Wait(at(1))


def test_the_api_itself_is_asked_before_it_is_ended() -> None:
    assert act(JOB, OPEN, taken_up(OVERDUE, running()), asked={}) == RefreshPod(POD, UID)


@pytest.mark.parametrize(
    ("main", "reason"), [(ended(0), Reason.SUCCEEDED), (ended(3), Reason.SCRIPT_FAILED)]
)
def test_a_job_that_has_ended_meanwhile_keeps_its_own_outcome(main: Any, reason: Reason) -> None:
    assert written(JOB, OPEN, taken_up(OVERDUE, main)).reason is reason


def test_pulling_counts_as_it_does_for_the_kubelet() -> None:
    assert written(JOB, OPEN, taken_up(OVERDUE, PULLING)).reason is Reason.DEADLINE_EXCEEDED


def test_a_pull_that_may_fail_for_a_while_is_not_waited_for_any_longer() -> None:
    patient, pod = PullSettings(patience=600), taken_up(DUE_SOON, PULLING)
    known = written(JOB, OPEN, pod, pull=patient)
    assert act(JOB, known, pod, pull=patient) == Wait(at(5))


def test_what_the_pod_carries_is_the_kubelets_affair() -> None:
    job = replace(JOB, features=Features())
    pod = taken_up(OVERDUE, running(), spec={"activeDeadlineSeconds": 10})
    assert act(job, replace(OPEN, state=State.RUNNING), pod) == Wait()


def test_a_longer_one_from_a_patch_or_a_template_does_not_lengthen_the_timeout() -> None:
    pod = taken_up(OVERDUE, running(), spec={"activeDeadlineSeconds": 9999})
    assert written(JOB, OPEN, pod).reason is Reason.DEADLINE_EXCEEDED


def test_a_pod_from_before_the_feature_was_switched_on_is_ended_all_the_same() -> None:
    job = replace(JOB, features=Features())
    assert written(job, OPEN, taken_up(OVERDUE, running())).reason is Reason.DEADLINE_EXCEEDED


def test_an_old_run_that_a_changed_spec_waits_for_is_ended_too() -> None:
    changed = make_job(config=CONFIG, timeout="10s", script="make other\n", onChange="Wait")
    assert act(changed, OPEN, taken_up(DUE_SOON, running())) == Wait(at(5))
    pod = taken_up(OVERDUE, running())
    assert act(changed, OPEN, pod, asked={}) == RefreshPod(POD, UID)
    over = written(changed, OPEN, pod)
    assert (over.reason, over.spec_hash) == (Reason.DEADLINE_EXCEEDED, JOB.spec_hash)
    assert act(changed, over, pod) == DeletePod(POD, UID, None, "its spec has changed")


def test_an_old_run_is_ended_by_the_timeout_that_it_was_started_with() -> None:
    """Not by that of the spec that waits for it."""
    pod = taken_up(DUE_SOON, running())
    begun = written(JOB, None, job_pod(JOB, gated=True), settled=[UID])
    assert begun.kept_timeout == 10
    old = replace(OPEN, kept_timeout=7200)
    hasty = make_job(config=CONFIG, timeout="1s", script="make other\n", onChange="Wait")
    assert act(hasty, old, pod) == Wait(at(7195))
    over = written(hasty, replace(OPEN, kept_timeout=3), pod)
    assert over.message == "ran longer than its timeout of 3s"
    own = make_job(config=CONFIG, timeout="1h")
    assert own.spec_hash == JOB.spec_hash  # a timeout of the run's own spec counts at once
    assert act(own, replace(old, state=State.RUNNING), pod) == Wait(at(3595))


def test_an_overdue_run_that_superseded_this_ones_is_looked_at_again_and_then_ended() -> None:
    own = make_job(config=CONFIG, timeout="10s", script="make other\n")
    old, pod = replace(OPEN, kept_timeout=3), taken_up(DUE_SOON, running())
    for asked, action in (({}, RefreshPod), ({UID: NOW}, WriteRecord)):
        state = make_state(own, old, pod, asked=asked)
        state.observed.superseded = True
        assert isinstance(decide(replace(state)), action)


def test_a_pod_without_a_status_has_all_its_time() -> None:
    pod = {key: part for key, part in taken_up(OVERDUE, None).items() if key != "status"}
    assert act(JOB, OPEN, pod) == Wait(at(3600 - 20))


def test_a_timeout_that_the_pod_carries_is_in_no_record() -> None:
    job = make_job(timeout="10s")
    pod = job_pod(job, gated=True)
    pod["spec"]["activeDeadlineSeconds"] = 10
    assert written(job, None, pod, settled=[UID]).kept_timeout == 0


def test_the_next_attempt_waits_until_the_pod_is_gone() -> None:
    job = make_job(
        config=CONFIG, timeout="10s", retry={"max": 1, "on": [Reason.DEADLINE_EXCEEDED.value]}
    )
    pod = job_pod(job, running(), startTime=OVERDUE)
    closed = written(job, record(attempt(job=job), job=job), pod)
    assert (closed.state, closed.attempts[0].outcome) == (
        State.STARTING,
        Reason.DEADLINE_EXCEEDED,
    )
    assert isinstance(act(job, closed, pod), DeletePod)
    dying = job_pod(job, running(), startTime=OVERDUE, deleted="2026-01-01T12:00:50Z")
    assert act(job, closed, dying, now=at(30)) == Wait()
    assert act(job, closed, now=at(30)) == CreatePod(2, {})
