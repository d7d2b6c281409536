"""The status of a job by its record and its pod."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.lifecycle.observed_status import as_observed, observed_status
from engine.lifecycle.record import Attempt, Record
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from engine.times import parse_time
from tests.unit.pods import STARTED, UID, ended, pod, running, waiting

OPEN = Record(
    JobKey("ci", "build"), "default", "2" * 64, state=State.STARTING,
    attempts=(Attempt(1, "build-1", UID, {"main": "Always"}),),
)  # fmt: skip
OVER = replace(OPEN, state=State.FAILED, reason=Reason.SCRIPT_FAILED, message="exit code 3")
QUEUED = replace(OPEN, state=State.QUEUED, message="exceeded quota: q", attempts=())
HELD: dict[str, Any] = pod(
    None, phase="Pending", spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
)
PULLING: dict[str, Any] = pod(waiting("ErrImagePull", "no such image"), phase="Pending")


@pytest.mark.parametrize(
    ("record", "found", "state", "reason", "is_recorded"),
    [
        (OPEN, pod(ended(0)), State.SUCCEEDED, Reason.SUCCEEDED, False),
        (OPEN, pod(ended(3)), State.FAILED, Reason.SCRIPT_FAILED, False),
        (OPEN, None, State.FAILED, Reason.POD_DELETED, False),
        (OPEN, pod(running()), State.RUNNING, None, True),
        (OPEN, PULLING, State.STARTING, None, True),
        (OPEN, HELD, State.QUEUED, None, True),
        (OVER, None, State.FAILED, Reason.SCRIPT_FAILED, True),
        (QUEUED, None, State.QUEUED, None, True),
    ],
)
def test_the_pod_tells_what_no_engine_has_recorded_yet(
    record: Record,
    found: dict[str, Any] | None,
    state: State,
    reason: Reason | None,
    is_recorded: bool,
) -> None:
    status = observed_status(record, found)
    assert (status.state, status.reason) == (state, reason)
    assert status.is_recorded is is_recorded


@pytest.mark.parametrize(
    ("record", "found", "state"),
    [
        (OPEN, pod(running()), State.RUNNING),
        (OPEN, pod(running(), metadata={"uid": "another"}), State.STARTING),
        (OPEN, PULLING, State.STARTING),
        (OPEN, pod(ended(3)), State.STARTING),
        (OVER, pod(running()), State.FAILED),
        (QUEUED, pod(running()), State.QUEUED),
    ],
)
def test_a_run_is_told_as_running_as_soon_as_its_pod_does(
    record: Record, found: dict[str, Any], state: State
) -> None:
    told = as_observed(record, [found])
    assert told.state is state
    since = parse_time(STARTED) if state is State.RUNNING else None
    assert {told.started_at, *(one.started_at for one in told.attempts)} == {since}
    assert told.message == ("" if state is State.RUNNING else record.message)


def test_what_holds_a_pod_back_is_told_by_name() -> None:
    assert "kueue.x-k8s.io/admission" in observed_status(OPEN, HELD).message
    assert "no such image" in observed_status(OPEN, PULLING).message
    assert observed_status(OPEN, None).message == 'pods "build-1" not found'
