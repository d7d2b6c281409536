"""What a job waits for; and the engine that follows it, by its Lease."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.inspect.view import JobView, QueuePosition, read_lease_holder, waits_for
from engine.lifecycle.observed_status import observed_status, recorded_status
from engine.lifecycle.record import Attempt, Record
from engine.refs import JobKey
from engine.runtime.lease import acquired, released
from engine.status.outcome import Reason, State
from tests.unit.pods import UID, ended, pod, running, waiting

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
OPEN = Record(
    JobKey("ci", "build"), "default", "2" * 64, state=State.STARTING,
    attempts=(Attempt(1, "build-1", UID, {"main": "Always"}),),
)  # fmt: skip
OVER = replace(OPEN, state=State.FAILED, reason=Reason.SCRIPT_FAILED, message="exit code 3")
QUEUED = replace(OPEN, state=State.QUEUED, message="exceeded quota: q", attempts=())
GATED: dict[str, Any] = pod(
    None, phase="Pending", spec={"schedulingGates": [{"name": "jobs.engine/dependents"}]}
)
HELD: dict[str, Any] = pod(
    None, phase="Pending", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
)
PULLING: dict[str, Any] = pod(waiting("ErrImagePull", "no such image"), phase="Pending")
LEAVING: dict[str, Any] = pod(
    running(),
    metadata={"deletionTimestamp": "2026-01-01T12:05:30Z", "deletionGracePeriodSeconds": 30},
)
STARTED: dict[str, Any] = pod(running())


def view(record: Record, found: dict[str, Any] | None) -> JobView:
    queue = QueuePosition(1, 2, 3.0) if record is QUEUED else None
    pods = {UID: found} if found is not None else {}
    return JobView(record.key, record, None, observed_status(record, found), pods, queue)


@pytest.mark.parametrize(
    ("record", "found", "words"),
    [
        (QUEUED, None, "quota, 1 of 2 in the queue for 3s: exceeded quota: q"),
        (OPEN, GATED, "has not opened its scheduling gate"),
        (OPEN, HELD, "kueue.x-k8s.io/admission"),
        (OPEN, PULLING, "no such image"),
        (OPEN, STARTED, "main container"),
        (OPEN, LEAVING, "which is being deleted"),
        (OPEN, pod(ended(3)), "record how attempt 1 ended"),
        (OPEN, pod(ended(0)), "record how attempt 1 ended"),
        (OPEN, None, "record how attempt 1 ended"),
    ],
)
def test_a_job_under_way_says_what_it_waits_for(
    record: Record, found: dict[str, Any] | None, words: str
) -> None:
    assert words in waits_for(view(record, found))


def test_a_job_that_is_over_waits_for_a_person_and_an_unreadable_one_is_unknown() -> None:
    assert "engine rerun ci/build" in waits_for(view(OVER, None))
    assert waits_for(JobView(OPEN.key, None)) == ""


@pytest.mark.parametrize("record", [QUEUED, OPEN, replace(QUEUED, message="")])
def test_something_is_waited_for_whatever_is_known(record: Record) -> None:
    for found in (None, GATED, HELD, PULLING, LEAVING, STARTED, {"metadata": {"name": "x"}}):
        pods = {UID: found} if found else {}
        assert waits_for(JobView(record.key, record, None, recorded_status(record), pods))


def test_a_lease_tells_who_follows_and_since_when_nobody_does() -> None:
    lease = acquired(
        None, namespace="ci", source="default", identity="host_1", duration=15, now=NOW
    )
    alive = read_lease_holder(lease, NOW + timedelta(seconds=20))
    assert alive is not None
    assert (alive.source, alive.holder, alive.is_alive) == ("default", "host_1", True)
    late = read_lease_holder(lease, NOW + timedelta(minutes=5))
    assert late is not None
    assert (late.is_alive, late.renewed_at) == (False, NOW)
    given_up = read_lease_holder(released(lease, source="default", now=NOW), NOW)
    assert given_up is not None
    assert (given_up.is_alive, given_up.holder) == (False, "")


def test_a_lease_that_no_engine_wrote_says_nothing() -> None:
    lease = acquired(
        None, namespace="ci", source="default", identity="host_1", duration=15, now=NOW
    )
    assert read_lease_holder({**lease, "metadata": {"name": "engine-default"}}, NOW) is None
    assert read_lease_holder({**lease, "metadata": {**lease["metadata"], "name": "x"}}, NOW) is None
    lease["spec"]["renewTime"] = "yesterday"
    odd = read_lease_holder(lease, NOW)
    assert odd is not None
    assert not odd.is_alive
