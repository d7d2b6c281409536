"""A watch may be behind: what can't be taken back is decided on what the API itself says."""

import pytest
from msgspec.structs import replace

from engine.api.model import OnChange
from engine.lifecycle.actions import CreatePod, DeletePod, Done, RefreshPod
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import (
    JOB,
    act,
    admission,
    at,
    attempt,
    finished,
    quota,
    record,
    written,
)
from tests.unit.pods import UID, ended, job_pod, running, waiting

POD = f"build-{JOB.run}-1"
LOOK = RefreshPod(POD, UID)
TWO = make_job(pullPolicy=["Always", "IfNotPresent"])


@pytest.mark.parametrize("asked", [{}, {UID: at(-10)}, {"another": at(0)}])
def test_no_attempt_is_given_up_before_the_api_was_asked(asked: dict[str, object]) -> None:
    late, stuck = job_pod(JOB, phase="Pending"), job_pod(JOB, waiting("ErrImagePull", "not found"))
    assert act(JOB, record(attempt()), late, now=at(900), asked=asked) == LOOK
    assert act(JOB, record(attempt()), stuck, asked=asked) == LOOK


def test_an_end_that_was_seen_needs_no_question() -> None:
    over = job_pod(JOB, ended(0), phase="Succeeded")
    assert written(JOB, record(attempt()), over, asked={}).state is State.SUCCEEDED


@pytest.mark.parametrize("rejection", [admission(uid=UID), quota(uid=UID)])
def test_no_pod_goes_for_a_refusal_before_the_api_was_asked(rejection: object) -> None:
    """Another engine may have got through with what was refused here, and recorded the pod."""
    gated = job_pod(JOB, gated=True)
    assert act(JOB, record(attempt()), gated, rejection=rejection, asked={}) == LOOK
    assert act(JOB, None, gated, rejection=rejection, asked={}) == LOOK


def test_on_change_wait_asks_whether_the_old_pod_has_started() -> None:
    new = replace(JOB, spec_hash="f" * 64, on_change=OnChange.WAIT)
    assert act(new, record(attempt()), job_pod(JOB, phase="Pending"), asked={}) == LOOK


def test_a_pod_that_a_finished_run_left_is_asked_for_before_it_goes() -> None:
    """It may be of a run that began since: `engine rerun`, or a record deleted by hand."""
    over, gated = finished(), job_pod(JOB, gated=True, uid="uid-2")
    assert act(JOB, over, gated, asked={}) == RefreshPod(POD, "uid-2")
    assert isinstance(act(JOB, over, gated), DeletePod)
    assert act(JOB, over, job_pod(JOB, ended(0), phase="Succeeded"), asked={}) == Done()


def test_a_pod_of_another_attempt_or_run_is_asked_for_before_it_goes() -> None:
    """The record may be behind: another engine may be at the next attempt already."""
    closed = attempt(outcome=Reason.EVICTED, finished_at=at(-1))
    later = job_pod(JOB, running(), attempt=3, uid="uid-3")
    other = job_pod(JOB, running(), run="ffffffff", uid="uid-4")
    for pod in (later, other):
        looked = act(JOB, record(closed), pod, asked={})
        assert looked == RefreshPod(pod["metadata"]["name"], pod["metadata"]["uid"])
        assert isinstance(act(JOB, record(closed), pod), DeletePod)


def test_a_pod_is_deleted_only_as_it_was_decided_on() -> None:
    stuck = job_pod(JOB, waiting("ErrImagePull", "x"))
    stuck["metadata"]["resourceVersion"] = "41"
    action = act(JOB, finished(Reason.IMAGE_PULL_FAILED), stuck)
    assert isinstance(action, DeletePod)
    assert action.version == "41"


@pytest.mark.parametrize("main", [running(), ended(0)])
def test_an_attempt_whose_image_came_after_all_goes_on(main: dict[str, object]) -> None:
    """The engine died between the record and the deletion; the kubelet went on pulling."""
    closed = attempt(job=TWO, outcome=Reason.IMAGE_PULL_FAILED, finished_at=at(-1))
    again = written(TWO, record(closed, job=TWO), job_pod(TWO, main))
    assert [(a.number, a.uid, a.outcome) for a in again.attempts] == [(1, UID, None)]
    stuck = job_pod(TWO, waiting("ImagePullBackOff", "Back-off pulling image"))
    assert isinstance(act(TWO, record(closed, job=TWO), stuck), DeletePod)
    assert act(TWO, record(closed, job=TWO)) == CreatePod(2, {"main": "Always"})


def test_a_main_container_that_runs_is_taken_up_again_though_another_image_is_missing() -> None:
    """To delete its pod would start the script a second time."""
    others = {"patched": waiting("ErrImagePull", "not found")}
    closed = attempt(job=TWO, outcome=Reason.IMAGE_PULL_FAILED, finished_at=at(-1))
    pod = job_pod(TWO, running(), others=others)
    again = written(TWO, record(closed, job=TWO), pod)
    assert [(a.number, a.outcome) for a in again.attempts] == [(1, None)]
    assert not isinstance(act(TWO, again, pod), DeletePod)


def test_a_record_that_has_a_pod_under_another_name_proves_nothing_of_it() -> None:
    """Nothing is made for the name in such a record: the pod that has it isn't this one."""
    first, second = job_pod(JOB, gated=True), attempt(2)
    assert act(JOB, record(second), first, asked={}) == RefreshPod(second.pod, UID)
    assert act(JOB, record(second), first, made=()) == RefreshPod(second.pod, UID)
