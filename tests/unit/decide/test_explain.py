"""Why a job starts or stays: as precise as its record is, and no more."""

from dataclasses import replace
from typing import Any

import pytest

from engine.api.model import Job
from engine.decide.actions import CreatePod, DeletePod, Wait, WriteRecord
from engine.decide.explain import (
    describe_step,
    explain_rest,
    explain_start,
    fields_changed,
    replaces,
)
from engine.decide.record import Record
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.decide.situations import JOB, attempt, finished, record


def of(job: Job) -> Record:
    """The record of a run of `job` that is over."""
    return finished(job=job, spec_fields=job.spec_fields)


@pytest.mark.parametrize(
    ("before", "now", "fields"),
    [
        ({"image": "a:1"}, {"image": "a:2"}, ["spec.image"]),
        ({}, {"ttl": "1h"}, ["spec.ttl"]),
        ({"ttl": "1h", "env": {"A": "1"}}, {"env": {"A": "2"}}, ["spec.env", "spec.ttl"]),
        ({"rerun": "1"}, {"rerun": "2"}, ["spec.rerun"]),
    ],
)
def test_the_record_tells_in_which_fields_the_spec_has_changed(
    before: dict[str, Any], now: dict[str, Any], fields: list[str]
) -> None:
    known, job = of(make_job(**before)), make_job(**now)
    assert [*fields_changed(job, known)] == fields
    what = "rerun token" if fields == ["spec.rerun"] else f"spec changed at {', '.join(fields)}"
    assert explain_start(job, known) == f"runs again: {what}"


def test_a_secrets_value_is_in_no_digest() -> None:
    one, other = (make_job(secrets={"A": {"value": value}}) for value in ("one", "other"))
    assert one.spec_fields == other.spec_fields


def test_where_a_record_of_0_1_does_not_say_what_it_ran_nobody_guesses() -> None:
    known = replace(of(make_job(ttl="1h")), spec_fields="")
    assert fields_changed(JOB, known) == ()
    assert explain_start(JOB, known) == "runs again: spec changed; where, its record doesn't say"


def test_a_job_that_is_to_start_says_why() -> None:
    assert explain_start(JOB, None) == "no record"
    assert explain_start(JOB, of(JOB).next_run(JOB.spec_hash)) == (
        "runs again: asked for with engine rerun"
    )
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
    changed = make_job(ttl="1h")
    assert explain_rest(changed, of(JOB), Wait()) == (
        "waits for the cluster; then it runs again: spec changed at spec.ttl"
    )
    waits = make_job(onChange="Wait")
    known = record(attempt(), spec_fields=JOB.spec_fields)
    assert explain_rest(waits, known, Wait()) == (
        f"pod {name} comes to its end first (onChange: Wait); then it runs again:"
        " spec changed at spec.onChange"
    )


def test_a_run_is_replaced_only_if_something_of_it_is_under_way() -> None:
    create, delete = CreatePod(1, {}), DeletePod("a", "uid", None, "its spec has changed")
    assert replaces([WriteRecord(finished(Reason.CANCELLED)), create])
    assert replaces([delete, create])
    assert not replaces([WriteRecord(finished()), create])
    assert not replaces([delete])
    assert describe_step(JOB, create) == f"create pod build-{JOB.run}-1"
    assert describe_step(JOB, delete) == "delete pod a: its spec has changed"
