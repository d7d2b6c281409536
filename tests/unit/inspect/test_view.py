"""What a job waits for, and what comes next; and the engine that follows it, by its Lease."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.inspect.view import JobView, QueuePosition, next_step, read_lease_holder
from engine.lifecycle.observed_status import observed_status, recorded_status
from engine.lifecycle.record import Attempt, Record
from engine.refs import JobKey
from engine.runtime.lease import with_holder
from engine.status.outcome import Reason, State
from engine.wellknown import ORPHANED_SINCE
from tests.unit.pods import UID, ended, pod, running, waiting

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
OPEN = Record(
    JobKey("ci", "build"), "default", "2" * 64, state=State.STARTING,
    attempts=(Attempt(1, "build-1", UID, {"main": "Always"}),),
)  # fmt: skip
OVER = replace(OPEN, state=State.FAILED, reason=Reason.SCRIPT_FAILED, message="exit code 3")
CLAIMED = replace(OPEN, attempts=(Attempt(1, "build-1", "", {"main": "Always"}),))
GONE = {ORPHANED_SINCE: "2026-01-01T12:00:00Z"}
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
    ("record", "found", "waits_for", "following"),
    [
        (OVER, None, "", "engine rerun ci/build"),
        (QUEUED, None, "quota, 1 of 2 in the queue for 3s: exceeded quota: q", "attempt 1 starts"),
        (replace(QUEUED, annotations=GONE), None, "its spec, which is gone", "until it is back"),
        (CLAIMED, None, "to create the pod of attempt 1", "attempt 1 starts"),
        (OPEN, GATED, "to open its gate", "the pod starts"),
        (OPEN, HELD, "kueue.x-k8s.io/admission", "its containers start"),
        (OPEN, PULLING, "no such image", "its containers start, or the attempt fails"),
        (OPEN, STARTED, "main container", "its outcome is recorded"),
        (OPEN, LEAVING, "which is being deleted", "its outcome is recorded"),
        (OPEN, pod(ended(3)), "record how attempt 1 ended", "ScriptFailed is recorded"),
        (OPEN, pod(ended(0)), "record how attempt 1 ended", "Succeeded is recorded"),
        (OPEN, None, "record how attempt 1 ended", "PodDeleted is recorded"),
    ],
)
def test_what_a_job_waits_for_and_what_comes_next(
    record: Record, found: dict[str, Any] | None, waits_for: str, following: str
) -> None:
    steps = next_step(view(record, found))
    assert waits_for in steps[0]
    assert following in steps[1]


@pytest.mark.parametrize("record", [QUEUED, OPEN, replace(QUEUED, message="")])
def test_there_is_a_next_step_whatever_is_known(record: Record) -> None:
    for found in (None, GATED, HELD, PULLING, LEAVING, STARTED, {"metadata": {"name": "x"}}):
        pods = {UID: found} if found else {}
        assert all(next_step(JobView(record.key, record, None, recorded_status(record), pods)))
    assert next_step(JobView(record.key, None)) == ("", "")


def test_a_lease_tells_who_follows_and_since_when_nobody_does() -> None:
    new = {"metadata": {"name": "engine-default", "namespace": "ci"}}
    lease = with_holder(new, "host_1", "default", 15, NOW)
    alive = read_lease_holder(lease, NOW + timedelta(seconds=20))
    assert alive is not None
    assert (alive.source, alive.holder, alive.is_alive) == ("default", "host_1", True)
    late = read_lease_holder(lease, NOW + timedelta(minutes=5))
    assert late is not None
    assert (late.is_alive, late.renewed_at) == (False, NOW)
    given_up = read_lease_holder(with_holder(lease, "", "default", 1, NOW), NOW)
    assert given_up is not None
    assert (given_up.is_alive, given_up.holder) == (False, "")


def test_a_lease_that_no_engine_wrote_says_nothing() -> None:
    new = {"metadata": {"name": "engine-default", "namespace": "ci"}}
    lease = with_holder(new, "host_1", "default", 15, NOW)
    assert read_lease_holder({**lease, "metadata": {"name": "engine-default"}}, NOW) is None
    assert read_lease_holder({**lease, "metadata": {**lease["metadata"], "name": "x"}}, NOW) is None
    lease["spec"]["renewTime"] = "yesterday"
    odd = read_lease_holder(lease, NOW)
    assert odd is not None
    assert not odd.is_alive
