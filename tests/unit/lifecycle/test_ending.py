from typing import Any

import pytest
from msgspec.structs import replace

from engine.lifecycle.actions import DeletePod, Done, RefreshPod, Wait, WriteRecord
from engine.lifecycle.rules import decide
from engine.status.deletion import Deletion
from engine.status.outcome import LastWords, Outcome, Reason, State
from engine.times import parse_time
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import (
    JOB,
    NOW,
    act,
    at,
    attempt,
    finished,
    make_state,
    quota,
    record,
    written,
)
from tests.unit.pods import CREATED, FINISHED, UID, container, ended, job_pod, running, waiting

POD = f"build-{JOB.run}-1"
OPEN = record(attempt())
PENDING: dict[str, Any] = {"phase": "Pending"}


@pytest.mark.parametrize(
    ("pod", "reason", "message", "code"),
    [
        (job_pod(JOB, ended(0), phase="Succeeded"), Reason.SUCCEEDED, "", 0),
        (job_pod(JOB, ended(3), phase="Failed"), Reason.SCRIPT_FAILED, "exit code 3", 3),
        (job_pod(JOB, ended(0), others={"redis": running()}), Reason.SUCCEEDED, "", 0),
        (job_pod(JOB, ended(137, "OOMKilled"), phase="Failed"), Reason.OOM_KILLED,
         "out of memory", 137),
        (job_pod(JOB, phase="Failed", reason="Evicted", message="low on memory"), Reason.EVICTED,
         "low on memory", None),
        (job_pod(JOB, phase="Failed", reason="DeadlineExceeded",
                 spec={"activeDeadlineSeconds": 5}), Reason.DEADLINE_EXCEEDED,
         "ran longer than its timeout of 5s", None),
    ],
)  # fmt: skip
def test_an_outcome_is_written_down(
    pod: dict[str, Any], reason: Reason, message: str, code: int | None
) -> None:
    over = written(JOB, OPEN, pod)
    assert (over.state, over.reason, over.message) == (reason.state, reason, message)
    assert over.exit_code == code
    assert over.finished_at == (parse_time(FINISHED) if code is not None else NOW)
    (closed,) = over.attempts
    assert (closed.outcome, closed.message, closed.exit_code) == (reason, message, code)
    assert closed.finished_at == over.finished_at
    assert over.version == OPEN.version


def test_the_start_is_told_by_the_kubelet() -> None:
    over = written(JOB, OPEN, job_pod(JOB, ended(0), phase="Succeeded"))
    assert over.started_at == over.attempts[0].started_at == at(-10)


# A pod that is gone


def test_a_missing_pod_is_asked_for_before_anything_is_concluded() -> None:
    assert act(JOB, OPEN) == RefreshPod(POD, UID)


def test_a_pod_that_is_really_gone_ends_the_job_in_kubectls_words() -> None:
    over = written(JOB, OPEN, gone=[UID])
    assert (over.state, over.reason) == (State.FAILED, Reason.POD_DELETED)
    assert over.message == f'pods "{POD}" not found'


def test_a_pod_that_is_gone_may_have_told_its_end_before() -> None:
    over = written(
        JOB, OPEN, gone=[UID], ends={UID: Outcome(Reason.SCRIPT_FAILED, "exit code 3", 3)}
    )
    assert (over.reason, over.exit_code) == (Reason.SCRIPT_FAILED, 3)


def test_a_lost_node_is_told_although_it_can_report_no_phase() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    dying = job_pod(JOB, running(), deleted="2026-01-01T12:00:50Z", conditions=[condition])
    assert written(JOB, OPEN, dying).reason is Reason.NODE_LOST


def test_a_pod_of_the_same_name_but_another_uid_is_not_the_pod() -> None:
    other = job_pod(JOB, running(), uid="another")
    assert act(JOB, OPEN, other) == RefreshPod(POD, UID)


def test_a_running_pod_under_deletion_is_waited_for() -> None:
    dying = job_pod(JOB, running(), deleted="2026-01-01T12:00:50Z")
    assert act(JOB, OPEN, dying) == Wait()


def test_a_container_that_dies_of_the_deletion_has_not_failed() -> None:
    """Deleted at 12:00:20 with 30 s of grace; killed at 12:00:30."""
    killed = job_pod(JOB, ended(143), phase="Failed", deleted="2026-01-01T12:00:50Z")
    assert act(JOB, OPEN, killed) == Wait()


def test_nor_has_it_when_the_kubelet_has_rewritten_the_deletion() -> None:
    """Its last delete says grace 0 and a later time; when it was asked for was seen before."""
    killed = job_pod(JOB, ended(143), phase="Failed", deleted="2026-01-01T12:00:50Z")
    killed["metadata"]["deletionGracePeriodSeconds"] = 0
    assert act(JOB, OPEN, killed) == Wait()
    before, after = Deletion(at(0)), Deletion(at(11))
    assert act(JOB, OPEN, killed, deletions={UID: before}) == Wait()
    over = written(JOB, OPEN, killed, deletions={UID: after})
    assert over.reason is Reason.SCRIPT_FAILED


def test_an_eviction_is_waited_for_while_the_container_may_still_end_with_0() -> None:
    reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    conditions = [{"type": "DisruptionTarget", "status": "True", **reason}]
    dying = job_pod(JOB, running(), deleted="2026-01-01T12:00:50Z", conditions=conditions)
    assert act(JOB, OPEN, dying) == Wait()
    done = job_pod(JOB, ended(0), deleted="2026-01-01T12:00:50Z", conditions=conditions)
    assert written(JOB, OPEN, done).reason is Reason.SUCCEEDED
    killed = job_pod(JOB, ended(143), deleted="2026-01-01T12:00:50Z", conditions=conditions)
    over = written(JOB, OPEN, killed)
    assert (over.reason, over.message) == (Reason.EVICTED, "Eviction API: evicting")


def test_a_failure_from_before_the_deletion_counts() -> None:
    failed = job_pod(JOB, ended(3), phase="Failed", deleted="2026-01-01T12:05:00Z")
    assert written(JOB, OPEN, failed).reason is Reason.SCRIPT_FAILED


def test_a_success_counts_even_under_deletion() -> None:
    done = job_pod(JOB, ended(0), phase="Succeeded", deleted="2026-01-01T12:00:50Z")
    assert written(JOB, OPEN, done).reason is Reason.SUCCEEDED


# What will never start


def test_an_invalid_image_name_ends_the_job_at_once() -> None:
    job = make_job(pullPolicy=["Always", "IfNotPresent"])
    pod = job_pod(job, waiting("InvalidImageName", "invalid reference format"), **PENDING)
    over = written(job, record(attempt(job=job), job=job), pod)
    assert (over.reason, over.message) == (Reason.INVALID_IMAGE, "main: invalid reference format")


def test_a_container_that_cant_be_configured_ends_the_job_with_the_words() -> None:
    words = 'secret "other" not found'
    pod = job_pod(JOB, waiting("CreateContainerConfigError", words), **PENDING)
    over = written(JOB, OPEN, pod)
    assert (over.reason, over.message) == (Reason.CONTAINER_CONFIG_ERROR, f"main: {words}")


def test_what_the_main_container_lacks_is_told_after_the_init_containers_as_well() -> None:
    lacks = waiting("CreateContainerConfigError", "couldn't find key k in Secret ci/ci")
    pod = job_pod(JOB, lacks, init={"prepare": ended(0)}, sidecars={"db": running()}, **PENDING)
    over = written(JOB, replace(OPEN, state=State.RUNNING), pod)
    told = "main: couldn't find key k in Secret ci/ci"
    assert (over.reason, over.message) == (Reason.CONTAINER_CONFIG_ERROR, told)


def test_a_main_container_that_its_own_rules_restart_is_waited_for() -> None:
    pod = job_pod(JOB, waiting("CrashLoopBackOff", "back-off 10s"))
    pod["status"]["containerStatuses"][0]["lastState"] = ended(3)
    pod["status"]["initContainerStatuses"] = [container("prepare", ended(0))]
    assert act(JOB, replace(OPEN, state=State.RUNNING), pod) == Wait()


def test_a_pod_that_does_not_start_in_time_tells_what_it_waited_for() -> None:
    job = make_job(startTimeout="1m")
    open_run = record(attempt(job=job), job=job)
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    pod = job_pod(job, conditions=[condition], **PENDING)
    assert pod["metadata"]["creationTimestamp"] == CREATED
    assert act(job, open_run, pod, now=at(39)) == Wait(at(40))
    over = written(job, open_run, pod, now=at(40))
    assert over.reason is Reason.START_TIMEOUT
    assert over.message == "not started within 60s: not scheduled: 0/1 nodes are available"


def test_a_pod_that_lacks_something_for_too_long_ends_with_what_it_lacks() -> None:
    job, words = make_job(startTimeout="1m"), 'secret "other" not found'
    pod = job_pod(job, waiting("CreateContainerConfigError", words), **PENDING)
    over = written(job, record(attempt(job=job), job=job), pod, now=at(400))
    assert (over.reason, over.message) == (Reason.CONTAINER_CONFIG_ERROR, f"main: {words}")


def test_a_pod_that_waits_in_time_is_not_asked_for_again() -> None:
    pod = job_pod(JOB, waiting("ContainerCreating"), **PENDING)
    assert isinstance(act(JOB, OPEN, pod, asked={}), Wait)


def test_a_script_that_failed_is_not_tried_again_for_a_timeout_that_was_raised_meanwhile() -> None:
    raised = make_job(timeout="3h")
    known = replace(OPEN, spec_fields=make_job(timeout="1h").spec_fields)
    pod = job_pod(raised, ended(3), phase="Failed")
    pod["spec"]["activeDeadlineSeconds"] = 3600
    assert written(raised, known, pod).is_of(raised)
    pod = job_pod(raised, ended(137), phase="Failed", reason="DeadlineExceeded")
    pod["spec"]["activeDeadlineSeconds"] = 3600
    assert not written(raised, known, pod).is_of(raised)


def test_a_started_job_has_no_start_timeout() -> None:
    job = make_job(startTimeout="1m")
    open_run = record(attempt(job=job), job=job, state=State.RUNNING)
    open_run = replace(open_run, state=State.RUNNING)
    assert act(job, open_run, job_pod(job, running()), now=at(9000)) == Wait()


# A run that is over


@pytest.mark.parametrize("reason", [*filter(Reason.SUPERSEDED.__ne__, Reason)])
def test_a_finished_job_is_left_alone(reason: Reason) -> None:
    assert act(JOB, finished(reason)) == Done()


def test_a_finished_job_stays_finished_when_its_pod_was_pruned() -> None:
    assert act(JOB, finished(), gone=[UID]) == Done()


def test_a_finished_pod_keeps_its_log_until_its_ttl() -> None:
    assert act(JOB, finished(), job_pod(JOB, ended(0), phase="Succeeded")) == Done()


def test_a_stuck_pod_goes_only_after_its_outcome_is_recorded() -> None:
    stuck = job_pod(JOB, waiting("InvalidImageName", "x"), **PENDING)
    over = written(JOB, OPEN, stuck)
    action = act(JOB, over, stuck)
    assert action == DeletePod(POD, UID, 0, "its attempt ended: InvalidImage")
    assert act(JOB, over) == Done()


def test_a_service_that_goes_on_is_stopped_with_its_own_grace() -> None:
    pod = job_pod(JOB, ended(0), others={"redis": running()})
    over = written(JOB, OPEN, pod)
    assert act(JOB, over, pod) == DeletePod(POD, UID, None, "its attempt ended: Succeeded")


def test_native_sidecars_are_left_to_the_kubelet_to_stop() -> None:
    pod = job_pod(JOB, ended(0), sidecars={"redis": running()})
    assert act(JOB, written(JOB, OPEN, pod), pod) == Done()


def test_a_service_that_crashes_beside_the_running_job_is_not_its_end() -> None:
    crashed = waiting("CrashLoopBackOff", "back-off 5m0s")
    pod = job_pod(JOB, running(), others={"redis": crashed})
    assert act(JOB, replace(OPEN, state=State.RUNNING), pod) == Wait()


def test_a_pod_that_is_being_deleted_is_not_deleted_again() -> None:
    pod = job_pod(JOB, running(), deleted="2026-01-01T12:00:50Z")
    assert act(JOB, finished(), pod) == Done()


def test_a_finished_job_ignores_a_refusal_from_before() -> None:
    assert act(JOB, finished(), rejection=quota()) == Done()


def test_the_last_line_of_the_container_that_failed_is_the_cause_of_its_exit_code() -> None:
    pod = job_pod(JOB, ended(3, message="cloning\nno such host\n"), phase="Failed")
    over = written(JOB, OPEN, pod)
    assert over.message == "exit code 3: no such host"
    assert over.attempts[0].last_words == (LastWords("main", "cloning\nno such host"),)
    evicted = job_pod(JOB, ended(143, message="stopping"), phase="Failed", reason="Evicted")
    (closed,) = written(JOB, OPEN, evicted).attempts
    assert (closed.message, closed.last_words[0].message) == ("Evicted", "stopping")


def test_a_success_has_no_last_words_whatever_became_of_its_services() -> None:
    services = {"db": ended(1, message="out of memory")}
    over = written(JOB, OPEN, job_pod(JOB, ended(0), sidecars=services, phase="Succeeded"))
    assert (over.reason, over.attempts[0].last_words) == (Reason.SUCCEEDED, ())


def test_a_start_that_is_recorded_stays_as_it_is() -> None:
    known = record(attempt(started_at=at(-60)))
    over = written(JOB, known, job_pod(JOB, ended(0), phase="Succeeded"))
    assert over.attempts[0].started_at == at(-60)


def test_no_last_words_are_kept_where_a_secret_could_not_be_masked_in_them() -> None:
    state = make_state(JOB, OPEN, job_pod(JOB, ended(3, message="hunter2"), phase="Failed"))
    state.observed.masks_secrets = False
    action = decide(state)
    assert isinstance(action, WriteRecord)
    assert "hunter2" not in repr(action)
