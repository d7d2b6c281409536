"""Records that 0.1 wrote are read, and what is written 0.1 can read.

On servers without scheduling gates it recorded an attempt before it created the pod, and forgave a
first `unauthorized`: such records may have outlived their server's upgrade.
"""

import json
from typing import Any

from engine.decide.actions import ConfirmDeleted, CreatePod, RemoveSchedulingGate
from engine.decide.record import Record
from engine.decide.record_codec import decode_record, encode_record
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.decide.situations import JOB, act, attempt, record, written
from tests.unit.pods import UID, job_pod, running, waiting

POD = f"build-{JOB.run}-1"
PULL = {
    "container": "main",
    "reason": "ErrImagePull",
    "class": "unauthorized",
    "message": "authentication required",
}


def read(state: State = State.STARTING, *attempts: dict[str, Any], **more: Any) -> Record:
    """A record of 0.1; its attempt has no UID yet, unless others are given."""
    alone = {"number": 1, "pod": POD, "claimedAt": "2026-01-01T12:00:00.000Z"}
    data = {
        "source": "default",
        "specHash": JOB.spec_hash,
        "state": state.value,
        "queuedAt": "2026-01-01T12:00:00.000Z",
        "attempts": attempts or (alone,),
        **more,
    }
    return decode_record(JOB.key, json.dumps(data), "7")


def test_the_pod_of_an_attempt_without_a_uid_is_found_by_its_number_and_goes_on() -> None:
    pod = job_pod(JOB, running())
    found = written(JOB, read(), pod)
    assert [(a.number, a.pod, a.uid) for a in found.attempts] == [(1, POD, UID)]
    assert written(JOB, found, pod).state is State.RUNNING


def test_one_that_a_later_engine_of_0_1_created_with_a_gate_is_let_go() -> None:
    pod = job_pod(JOB, gated=True)
    found = written(JOB, read(), pod)
    assert isinstance(act(JOB, found, pod, settled=[UID]), RemoveSchedulingGate)


def test_a_pod_that_may_have_run_and_is_nowhere_is_not_created_again() -> None:
    assert act(JOB, read()) == ConfirmDeleted(POD, "")
    over = written(JOB, read(), gone=[""])
    assert (over.state, over.reason) == (State.FAILED, Reason.POD_DELETED)
    assert over.message == f'pods "{POD}" not found'


def test_an_attempt_without_a_uid_doesnt_stand_in_the_way_of_a_changed_spec() -> None:
    changed = make_job(script="another")
    assert act(changed, read()) == ConfirmDeleted(POD, "")
    over = written(changed, read(), gone=[""])
    assert not over.open_attempt
    assert act(changed, over) == CreatePod(1, {})


def test_what_a_quota_had_refused_is_tried_again() -> None:
    queued = read(State.QUEUED, reason="QuotaExceeded", message="exceeded quota: q")
    assert queued.attempts == ()
    assert act(JOB, queued) == CreatePod(1, {})


def test_a_pod_that_the_quota_let_in_before_0_1_ended_goes_on() -> None:
    queued = read(State.QUEUED, reason="QuotaExceeded", message="exceeded quota: q")
    found = written(JOB, queued, job_pod(JOB, running()), settled=[UID])
    assert [(a.number, a.uid) for a in found.attempts] == [(1, UID)]


def test_a_pull_that_0_1_forgave_costs_no_policy() -> None:
    job = make_job(pullPolicy=["Always", "Never"])
    forgiven = {
        "number": 1,
        "pod": f"build-{job.run}-1",
        "uid": "uid-1",
        "outcome": "ImagePullFailed",
        "failures": [{**PULL, "advances": False}],
    }
    known = read(State.STARTING, forgiven, specHash=job.spec_hash)
    assert act(job, known) == CreatePod(2, {"main": "Always"})
    assert json.loads(encode_record(known))["attempts"][0]["failures"] == [
        {**PULL, "advances": False}
    ]


def test_a_failed_pull_is_written_with_all_that_0_1_asks_for() -> None:
    job = make_job(pullPolicy=["Always", "Never"])
    pod = job_pod(job, waiting("ErrImagePull", PULL["message"]), phase="Pending")
    failed = written(job, record(attempt(job=job), job=job), pod)
    (entry,) = json.loads(encode_record(failed))["attempts"][0]["failures"]
    assert entry == {**PULL, "advances": True, "image": "main:1"}
