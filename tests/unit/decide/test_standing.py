"""Where a job stands by record and pod, what it waits for, what comes next, and who follows it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.decide.follower import read_follower
from engine.decide.lease import acquired, released
from engine.decide.outlook import read_outlook
from engine.decide.record import Attempt, Record
from engine.decide.standing import Standing, as_observed, read_standing, recorded_standing
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from engine.times import parse_time
from tests.unit.pods import STARTED, UID, ended, pod, running, waiting

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
OPEN = Record(
    JobKey("ci", "build"), "default", "2" * 64, State.STARTING,
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
TIMED: dict[str, Any] = pod(
    running(), spec={"activeDeadlineSeconds": 600}, startTime="2026-01-01T12:00:00Z"
)


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
    standing = read_standing(record, found)
    assert (standing.state, standing.reason) == (state, reason)
    assert standing.is_recorded is is_recorded


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
    assert "kueue.x-k8s.io/admission" in read_standing(OPEN, HELD).message
    assert "no such image" in read_standing(OPEN, PULLING).message
    assert read_standing(OPEN, None).message == 'pods "build-1" not found'


@pytest.mark.parametrize(
    ("record", "found", "waits_for", "following"),
    [
        (OVER, None, "nothing: the job is over", "engine rerun ci/build"),
        (QUEUED, None, "room in a quota, 1st of 2: exceeded quota: q", "asks again by itself"),
        (OPEN, GATED, "to open its gate", "the pod starts"),
        (OPEN, HELD, "kueue.x-k8s.io/admission", "clocks stand still"),
        (OPEN, PULLING, "no such image", "next pull policy"),
        (OPEN, TIMED, "main container", "at 2026-01-01T12:10:00Z the latest"),
        (OPEN, LEAVING, "which is being deleted", "its end is recorded"),
        (
            OPEN,
            pod(ended(3)),
            "record how attempt 1 ended",
            "ends as ScriptFailed, unless its retry allows attempt 2",
        ),
        (OPEN, None, "record how attempt 1 ended", "ends as PodDeleted, unless its retry allows"),
    ],
)
def test_what_a_job_waits_for_and_what_comes_next(
    record: Record, found: dict[str, Any] | None, waits_for: str, following: str
) -> None:
    queue = "1st of 2" if record is QUEUED else ""
    standing = read_standing(record, found)
    outlook = read_outlook(record, standing, found, is_followed=True, queue=queue)
    assert waits_for in outlook.waits_for
    assert following in outlook.next


def test_a_success_that_is_not_recorded_yet_is_the_end() -> None:
    found = pod(ended(0))
    standing = read_standing(OPEN, found)
    outlook = read_outlook(OPEN, standing, found, is_followed=True, queue="")
    assert outlook.next == "it ends as Succeeded"


@pytest.mark.parametrize(
    ("found", "goes_on"), [(TIMED, True), (pod(ended(0)), False), (GATED, False), (None, False)]
)
def test_without_an_engine_nothing_comes_next_but_what_the_pod_does_itself(
    found: dict[str, Any] | None, goes_on: bool
) -> None:
    standing = read_standing(OPEN, found)
    outlook = read_outlook(OPEN, standing, found, is_followed=False, queue="")
    assert outlook.next.startswith("nothing, until an engine runs")
    assert ("goes on by itself" in outlook.next) is goes_on


@pytest.mark.parametrize("record", [QUEUED, OPEN, replace(QUEUED, message="")])
def test_there_is_always_something_to_be_told(record: Record) -> None:
    for found in (None, GATED, HELD, PULLING, LEAVING, TIMED, {"metadata": {"name": "x"}}):
        for is_followed in (True, False, None):
            standing: Standing = recorded_standing(record)
            outlook = read_outlook(record, standing, found, is_followed=is_followed, queue="")
            assert outlook.waits_for
            assert outlook.next


def test_a_final_jobs_pod_says_until_when_its_log_is_there() -> None:
    found = pod(ended(3), metadata={"annotations": {"jobs.engine/ttl": "3600"}})
    standing = read_standing(OVER, found)
    outlook = read_outlook(OVER, standing, found, is_followed=None, queue="")
    assert "may be pruned from 2026-01-01T13:00:00Z on" in outlook.next
    found["metadata"]["annotations"]["jobs.engine/ttl"] = "soon"
    assert "pruned" not in read_outlook(OVER, standing, found, is_followed=None, queue="").next


def test_a_lease_tells_who_follows_and_since_when_nobody_does() -> None:
    lease = acquired(
        None, namespace="ci", source="default", identity="host_1", duration=15, now=NOW
    )
    alive = read_follower(lease, NOW + timedelta(seconds=20))
    assert alive is not None
    assert (alive.source, alive.holder, alive.is_alive) == ("default", "host_1", True)
    late = read_follower(lease, NOW + timedelta(minutes=5))
    assert late is not None
    assert (late.is_alive, late.renewed_at) == (False, NOW)
    given_up = read_follower(released(lease, source="default", now=NOW), NOW)
    assert given_up is not None
    assert (given_up.is_alive, given_up.holder) == (False, "")


def test_a_lease_that_no_engine_wrote_says_nothing() -> None:
    lease = acquired(
        None, namespace="ci", source="default", identity="host_1", duration=15, now=NOW
    )
    assert read_follower({**lease, "metadata": {"name": "engine-default"}}, NOW) is None
    assert read_follower({**lease, "metadata": {**lease["metadata"], "name": "x"}}, NOW) is None
    lease["spec"]["renewTime"] = "yesterday"
    odd = read_follower(lease, NOW)
    assert odd is not None
    assert not odd.is_alive
