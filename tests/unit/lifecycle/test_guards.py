"""What each arm of a rule is there for: without it a promise would be broken."""

from datetime import UTC, datetime

from msgspec.structs import replace

from engine.lifecycle.actions import CreatePod, Done, RefreshPod, ReportError, Wait
from engine.lifecycle.rules import decide
from engine.lifecycle.rules.follow_spec import follow_spec
from engine.status.outcome import Reason, State
from engine.wellknown import ORPHANED_SINCE
from engine.wellknown import SOURCE as SOURCE_LABEL
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import (
    JOB,
    PULL_FAILURE,
    act,
    at,
    attempt,
    finished,
    make_state,
    quota,
    record,
    refused_record,
    report,
    written,
)
from tests.unit.pods import UID, container, ended, job_pod, running

FIRST = f"build-{JOB.run}-1"


def test_a_recorded_pod_of_the_run_before_stays_when_the_new_record_is_refused() -> None:
    other = make_job(script="other")
    before = record(attempt(job=other), job=other)
    refused = refused_record(version="7")
    for gated in (True, False):
        pod = job_pod(other, running(), gated=gated)
        action = act(JOB, before, pod, rejection=refused)
        assert isinstance(action, Wait)
        assert action.until == refused.retry_at


def test_an_init_container_that_takes_longer_than_start_timeout_is_no_start_timeout() -> None:
    job = make_job(startTimeout="1m", initContainers=[{"name": "prepare", "image": "x"}])
    pod = job_pod(job)
    pod["status"]["initContainerStatuses"] = [container("prepare", running())]
    action = act(job, record(attempt(job=job), job=job, state=State.RUNNING), pod, now=at(9000))
    assert isinstance(action, Wait)


def test_an_attempt_that_is_opened_again_has_nothing_of_its_end() -> None:
    """Main began while its end as a failed start was written down."""
    over = attempt(
        outcome=Reason.START_TIMEOUT,
        message="not started within 60s",
        exit_code=1,
        finished_at=at(-1),
        failures=(PULL_FAILURE,),
        retry_at=at(5),
        exhausted=True,
    )
    waits = record(over, message="not started within 60s")
    for known in (waits, replace(waits, state=State.QUEUED)):
        again = written(JOB, known, job_pod(JOB, running()))
        assert again.last == attempt()
        assert (again.state, again.message) == (State.STARTING, "")


def test_a_mark_that_the_server_lets_nobody_remove_keeps_no_job_waiting() -> None:
    marked = replace(finished(), annotations={ORPHANED_SINCE: "2026-01-01T00:00:00Z"})
    state = make_state(JOB, marked)
    assert follow_spec(state) is not None
    state.observed.given_up.add(marked.version)
    assert decide(state) == Done()


def test_a_final_record_is_not_asked_to_wait_for_a_refusal_from_before() -> None:
    refused = refused_record(version="7")
    assert act(JOB, finished(), rejection=refused) == Done()


def test_a_pod_that_ended_while_its_record_was_refused_is_told_with_the_refusal() -> None:
    refused = refused_record(version="7")
    known = record(attempt(), state=State.RUNNING)
    for pod in (job_pod(JOB, ended(0), phase="Succeeded"), None):
        pods = () if pod is None else (pod,)
        assert act(JOB, known, *pods, rejection=refused) == report(refused)
    dying = job_pod(JOB, running())
    dying["metadata"]["deletionTimestamp"] = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    assert act(JOB, known, dying, rejection=refused) == report(refused)
    assert act(JOB, known, job_pod(JOB, running()), rejection=refused) == Wait(refused.retry_at)


def test_a_run_that_never_had_a_pod_keeps_no_rerun_waiting() -> None:
    refused = attempt(uid="", outcome=Reason.ADMISSION_REFUSED, finished_at=at(-5))
    over = replace(finished(Reason.ADMISSION_REFUSED), attempts=(refused,))
    again = replace(over.next_run(JOB.spec_hash), version="9")
    assert act(JOB, again) == CreatePod(2, {})


def test_a_gated_pod_of_another_source_and_another_run_is_left_alone() -> None:
    strange = job_pod(make_job(script="other"), gated=True)
    strange["metadata"]["labels"][SOURCE_LABEL] = "another"
    assert act(JOB, None, strange, made=()) == CreatePod(1, {})


def test_a_gated_pod_of_another_source_does_not_keep_a_job_from_being_over() -> None:
    strange = job_pod(JOB, gated=True, attempt=2, uid="uid-9")
    strange["metadata"]["labels"][SOURCE_LABEL] = "another"
    assert (
        act(JOB, finished(), job_pod(JOB, ended(0), phase="Succeeded"), strange, made=()) == Done()
    )
    report = act(
        JOB, None, {**strange, "metadata": {**strange["metadata"], "name": FIRST}}, made=()
    )
    assert isinstance(report, ReportError)


def test_a_run_that_was_too_long_for_the_timeout_of_its_pod_failed_by_that_timeout() -> None:
    """The job's own is longer by now: it is tried again with it."""
    job = make_job(timeout="2h")
    known = record(attempt(job=job), job=job, state=State.RUNNING, spec_fields="timeout=aaaaaaaa")
    for longest, fields in ((3600, "timeout=aaaaaaaa"), (7200, job.spec_fields)):
        pod = job_pod(job, ended(137), phase="Failed")
        pod["spec"]["activeDeadlineSeconds"] = longest
        pod["status"]["reason"] = "DeadlineExceeded"
        over = written(job, known, pod)
        assert (over.reason, over.spec_fields) == (Reason.DEADLINE_EXCEEDED, fields)


def test_a_refusal_about_another_pod_takes_no_recorded_attempt_back() -> None:
    for pod in (job_pod(JOB, running()), job_pod(JOB, gated=True)):
        known = record(attempt(), state=State.RUNNING)
        calm = act(JOB, known, pod, settled=[UID])
        assert act(JOB, known, pod, settled=[UID], rejection=quota(uid="another")) == calm


def test_a_refusal_about_a_second_pod_takes_no_recorded_attempt_back() -> None:
    known = record(attempt(), state=State.RUNNING)
    second = job_pod(JOB, gated=True, uid="another")
    pods = (job_pod(JOB, running()), second)
    assert act(JOB, known, *pods, rejection=quota(uid="another")) == act(JOB, known, *pods)


def test_a_refusal_about_a_pod_that_is_gone_takes_no_recorded_attempt_back() -> None:
    known = record(attempt())
    assert act(JOB, known, rejection=quota(uid=UID)) == RefreshPod(f"build-{JOB.run}-1", UID)


def test_a_job_keeps_its_place_in_the_line_once_its_pod_is_recorded() -> None:
    waited = record(state=State.QUEUED, refused="QuotaExceeded q")
    started = written(JOB, waited, job_pod(JOB, gated=True), settled=[UID])
    assert (started.state, started.queued_at) == (State.STARTING, at(-30))
    assert started.refused == "", "it would stay in the namespace's line"


def test_a_pod_that_has_ended_is_recorded_although_it_is_being_deleted() -> None:
    over = job_pod(JOB, ended(0), phase="Succeeded")
    over["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:30Z"
    assert written(JOB, None, over).open_attempt is not None
