from msgspec.structs import replace

from engine.lifecycle.actions import CreateDependents, CreatePod, DeletePod, Done, Wait
from engine.status.outcome import Reason, State
from tests.unit.lifecycle.states import (
    JOB,
    NOW,
    act,
    admission,
    at,
    attempt,
    quota,
    record,
    written,
)
from tests.unit.pods import UID, job_pod, running

POD = f"build-{JOB.run}-1"
MESSAGE = (
    'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
)


def test_a_quota_queues_the_job_in_its_own_words() -> None:
    queued = written(JOB, None, rejection=quota(message=MESSAGE))
    assert queued.state is State.QUEUED
    assert (queued.reason, queued.message) == (Reason.QUOTA_EXCEEDED, MESSAGE)
    assert queued.queued_at == NOW
    assert queued.attempts == ()
    assert queued.finished_at is None


def test_a_queued_job_waits_its_turn_and_then_asks_again() -> None:
    queued = written(JOB, None, rejection=quota())
    assert act(JOB, queued, rejection=quota()) == Wait(at(5))
    assert act(JOB, queued, rejection=quota(), now=at(5)) == CreatePod(1, {})


def test_a_job_waits_for_a_quota_in_whatever_words_its_record_has_the_refusal() -> None:
    queued = written(JOB, None, rejection=quota(message=MESSAGE))
    for words in ("***", f"{MESSAGE[:40]}…", MESSAGE.replace("used: pods=0", "used: pods=1")):
        known = replace(queued, message=words)
        assert act(JOB, known, rejection=quota(message=MESSAGE)) == Wait(at(5))
        assert act(JOB, known, rejection=quota(message=MESSAGE), now=at(5)) == CreatePod(1, {})


def test_a_queued_job_keeps_the_time_it_was_queued_at() -> None:
    queued = written(JOB, None, rejection=quota())
    again = written(JOB, queued, rejection=quota(70, "exceeded quota: r"), now=at(60))
    assert again.queued_at == NOW
    assert again.message == "exceeded quota: r"


def test_a_queued_job_that_gets_room_forgets_the_quota() -> None:
    queued = written(JOB, None, rejection=quota())
    started = written(JOB, queued, job_pod(JOB, gated=True), settled=[UID])
    assert started.state is State.STARTING
    assert (started.reason, started.message) == (None, "")


def test_a_gated_pod_whose_secret_was_refused_is_removed_before_anything_else() -> None:
    gated = job_pod(JOB, gated=True)
    action = act(JOB, None, gated, rejection=quota(message=MESSAGE, uid=UID))
    assert action == DeletePod(POD, UID, 0, MESSAGE)


def test_admission_is_final_and_leaves_nothing() -> None:
    gated = job_pod(JOB, gated=True)
    over = written(JOB, None, gated, rejection=admission(uid=UID))
    assert (over.state, over.reason) == (State.FAILED, Reason.ADMISSION_REFUSED)
    assert over.message == "denied by policy"
    assert [a.number for a in over.attempts] == [1]
    removal = act(JOB, over, gated, rejection=admission(uid=UID))
    assert removal == DeletePod(POD, UID, 0, "its attempt ended: AdmissionRefused")
    assert act(JOB, over, rejection=admission()) == Done()


def test_a_recorded_pod_that_is_removed_for_a_quota_is_created_again_later() -> None:
    """It was still gated: it never ran, so nothing is lost and nothing is doubled."""
    gated = job_pod(JOB, gated=True)
    queued = written(JOB, record(attempt()), gated, rejection=quota(uid=UID))
    assert (queued.state, queued.attempts) == (State.QUEUED, ())
    removal = act(JOB, queued, gated, rejection=quota(uid=UID))
    assert removal == DeletePod(POD, UID, 0, "exceeded quota: q")
    assert act(JOB, queued, rejection=quota(), gone=[UID], now=at(5)) == CreatePod(1, {})


def test_an_attempt_that_is_taken_back_for_a_quota_leaves_the_ones_before() -> None:
    closed = attempt(outcome=Reason.EVICTED, finished_at=at(-9), uid="uid-0")
    gated = job_pod(JOB, gated=True, attempt=2)
    queued = written(JOB, record(closed, attempt(2)), gated, rejection=quota(uid=UID))
    assert queued.attempts == (closed,)


def test_a_recorded_pod_that_admission_refuses_is_the_attempt_that_failed() -> None:
    gated = job_pod(JOB, gated=True)
    over = written(JOB, record(attempt()), gated, rejection=admission(uid=UID))
    assert [(one.uid, one.outcome) for one in over.attempts] == [(UID, Reason.ADMISSION_REFUSED)]


def test_a_running_job_is_not_touched_by_a_refusal() -> None:
    known = replace(record(attempt()), state=State.RUNNING)
    assert act(JOB, known, job_pod(JOB, running()), rejection=quota()) == Wait()


def test_a_pod_that_another_engine_got_past_the_quota_is_adopted() -> None:
    """Also the pod of a create whose reply was lost: asked again, a full quota refuses it."""
    gated, runs = job_pod(JOB, gated=True), job_pod(JOB, running())
    assert act(JOB, None, gated, rejection=quota()) == CreateDependents(POD, UID, 1, {})
    adopted = written(JOB, None, runs, rejection=quota(uid=UID), settled=[UID])
    assert [a.uid for a in adopted.attempts] == [UID]
    recorded = replace(record(attempt()), state=State.RUNNING)
    assert act(JOB, recorded, runs, rejection=admission()) == Wait()


def test_a_quota_met_by_a_retry_keeps_the_attempts_before() -> None:
    closed = attempt(outcome=Reason.IMAGE_PULL_FAILED, finished_at=at(-1))
    queued = written(JOB, replace(record(closed)), rejection=quota())
    assert queued.attempts == (closed,)
    assert act(JOB, queued, rejection=quota(), now=at(5)) == CreatePod(2, {})
