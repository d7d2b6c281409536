"""Why a job starts or stays: as precise as its record is, and no more."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.api.model import Job
from engine.lifecycle.actions import (
    Action,
    CreatePod,
    DeletePod,
    Done,
    ReportError,
    Wait,
    WriteRecord,
)
from engine.lifecycle.change_reason import (
    describe_action,
    explain_rest,
    explain_start,
    fields_changed,
    planned_action,
)
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, NOW, at, attempt, finished, make_state, record
from tests.unit.pods import ended, pod


def of(job: Job) -> Record:
    """The record of a run of `job` that is over."""
    return finished(job=job, spec_fields=job.spec_fields)


@pytest.mark.parametrize(
    ("before", "now", "fields"),
    [
        ({"image": "a:1"}, {"image": "a:2"}, ["spec.image"]),
        ({}, {"args": ["a"], "script": None}, ["spec.args", "spec.script"]),
        ({"ttl": "1h", "env": {"A": "1"}}, {"env": {"A": "2"}}, ["spec.env"]),
        ({"rerun": "1"}, {"rerun": "2"}, ["spec.rerun"]),
    ],
)
def test_the_record_tells_in_which_fields_the_spec_has_changed(
    before: dict[str, Any], now: dict[str, Any], fields: list[str]
) -> None:
    known, job = of(make_job(**before)), make_job(**now)
    assert [*fields_changed(job, known)] == fields
    assert explain_start(job, known) == (
        "rerun asked for" if fields == ["spec.rerun"] else f"{', '.join(fields)} changed"
    )


def test_a_secrets_value_is_in_no_digest() -> None:
    one, other = (make_job(secrets={"A": {"value": value}}) for value in ("one", "other"))
    assert one.spec_fields == other.spec_fields


def test_where_a_record_of_0_1_does_not_say_what_it_ran_nobody_guesses() -> None:
    known = replace(of(make_job(image="a:1")), spec_fields="")
    assert fields_changed(JOB, known) == ()
    assert explain_start(JOB, known) == "spec changed"


def test_a_job_that_is_to_start_says_why() -> None:
    assert explain_start(JOB, None) == "first run"
    assert explain_start(JOB, of(JOB).again()) == ("rerun asked for")
    queued = record(message="exceeded quota: q")
    assert explain_start(JOB, replace(queued, state=State.QUEUED)) == "queued: exceeded quota: q"
    evicted = record(attempt(outcome=Reason.EVICTED, message="low on memory"))
    assert explain_start(JOB, evicted) == "attempt 1 ended: Evicted: low on memory"


def test_a_job_that_is_left_says_why() -> None:
    assert explain_rest(JOB, of(JOB), Wait()) == "Succeeded, spec unchanged"
    failed = finished(Reason.SCRIPT_FAILED, message="exit code 3")
    assert explain_rest(JOB, failed, Wait()) == "Failed, spec unchanged: exit code 3"
    name = attempt().pod
    assert explain_rest(JOB, record(attempt()), Wait()) == f"Starting in pod {name}"
    waits = make_job(onChange="Wait", image="a:1")
    known = record(attempt(), spec_fields=JOB.spec_fields)
    assert explain_rest(waits, known, Wait()) == (
        f"pod {name} ends first (onChange: Wait): spec.image changed"
    )


CHANGED = make_job(image="another:1")
UNDER_WAY, OVER = record(attempt()), finished()
CREATE, DELETE = CreatePod(1, {}), DeletePod("a", "uid", None, "its spec has changed")
WRITE, CANCEL = WriteRecord(finished()), WriteRecord(finished(Reason.SUPERSEDED))


@pytest.mark.parametrize(
    ("job", "before", "action", "planned"),
    [
        (JOB, None, CREATE, "start"),
        (JOB, OVER, Done(), "leave"),
        (JOB, UNDER_WAY, Wait(), "leave"),
        (JOB, UNDER_WAY, WRITE, "continue"),
        (JOB, OVER, DELETE, "continue"),
        (CHANGED, OVER, DELETE, "replace"),
        (CHANGED, UNDER_WAY, CANCEL, "replace"),
        (CHANGED, UNDER_WAY, WRITE, "start"),
        (CHANGED, UNDER_WAY, Wait(), "leave"),
        (CHANGED, OVER, ReportError("it is theirs"), "fail"),
    ],
)
def test_the_next_step_is_of_a_new_run_once_the_spec_has_changed(
    job: Job, before: Record | None, action: Action, planned: str
) -> None:
    assert planned_action(make_state(job, before), action) == planned


def test_a_new_run_that_waits_for_the_end_of_the_old_pod_is_a_start() -> None:
    ending = pod(ended(0), phase="Running")
    for job, before in ((CHANGED, OVER), (JOB, OVER.next_run(JOB.spec_hash))):
        assert planned_action(make_state(job, before, ending), Wait()) == "start"
        assert planned_action(make_state(job, before), Wait()) == "leave"
    assert planned_action(make_state(JOB, OVER, ending), Wait()) == "leave"
    assert planned_action(make_state(CHANGED, UNDER_WAY, ending), Wait()) == "leave"


def test_a_retry_that_waits_for_its_time_is_a_start() -> None:
    failed = attempt(outcome=Reason.SCRIPT_FAILED, finished_at=NOW, retry_at=at(5))
    state = make_state(JOB, record(failed))
    assert decide(state) == Wait(at(5))
    assert planned_action(state, decide(state)) == "start"
    assert planned_action(make_state(JOB, UNDER_WAY), Wait(at(5))) == "leave"


def test_a_write_is_described_in_words() -> None:
    state = make_state()
    assert describe_action(state, CREATE) == f"create pod build-{JOB.run}-1"
    assert describe_action(state, DELETE) == "delete pod a: its spec has changed"
    assert describe_action(state, CANCEL) == "record attempt 1: Superseded"
    assert describe_action(state, Wait()) == ""
