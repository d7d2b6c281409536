"""What raised is reported when it is due, once; only an engine that doesn't stay gives up."""

import pytest

from engine.errors import (
    BusyError,
    Diagnostic,
    EngineError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
)
from engine.reconcile.completion import FailurePolicy, StopCondition
from engine.reconcile.job_store import TrackedJob
from engine.runtime.supervisor import Supervisor
from engine.telemetry.events import ErrorReported, Event, InternalError, SpecProblem
from tests.unit.builders import make_job

BUSY = BusyError("busy", status=429, reason="TooManyRequests", retry_after=7.0)
MISSING = NotFoundError('namespaces "ci" not found', status=404, reason="NotFound")
FORBIDDEN = ForbiddenError("forbidden", status=403, reason="Forbidden")


@pytest.fixture
def events() -> list[Event]:
    return []


def policy(events: list[Event], until: StopCondition | None = None) -> FailurePolicy:
    return FailurePolicy(events.append, Supervisor(events.append), until)


def test_what_trying_again_may_mend_is_reported_at_the_third_failure_in_a_row(
    events: list[Event],
) -> None:
    failures, state = policy(events), TrackedJob(make_job())
    for _ in range(2):
        failures.judge(state, BUSY)
    failures.succeeded(state)
    for _ in range(2):
        failures.judge(state, BUSY)
    assert events == []
    for _ in range(3):
        failures.judge(state, BUSY)
    assert events == [ErrorReported(state.job.key, str(BUSY), retrying=True)]


def test_a_server_is_asked_again_no_sooner_than_it_said(events: list[Event]) -> None:
    assert policy(events).judge(TrackedJob(make_job()), BUSY) == 7.0


def test_what_trying_again_cannot_mend_is_reported_at_once_and_once(events: list[Event]) -> None:
    failures, state = policy(events), TrackedJob(make_job())
    waits = [failures.judge(state, FORBIDDEN) for _ in range(3)]
    assert events == [ErrorReported(state.job.key, str(FORBIDDEN), retrying=True)]
    assert all(isinstance(wait, float) for wait in waits)


def test_a_job_starts_within_half_a_minute_of_the_namespace_that_it_lacked(
    events: list[Event],
) -> None:
    failures, state = policy(events), TrackedJob(make_job())
    waits = [failures.judge(state, MISSING) for _ in range(20)]
    assert max(wait for wait in waits if isinstance(wait, float)) < 30
    assert events == [ErrorReported(state.job.key, str(MISSING), retrying=True)]


def test_an_engine_that_does_not_stay_gives_up_what_it_cannot_mend(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    verdict = policy(events, StopCondition(False, 1.0)).judge(state, FORBIDDEN)
    assert verdict is FORBIDDEN
    assert events == [ErrorReported(state.job.key, str(FORBIDDEN), retrying=False)]


def test_it_gives_up_what_fails_for_too_long(events: list[Event]) -> None:
    failures = policy(events, StopCondition(False, 1.0, retry_timeout=-1.0))
    state = TrackedJob(make_job())
    assert failures.judge(state, BUSY) is BUSY


def test_each_problem_of_a_spec_is_reported(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    problems = tuple(Diagnostic(state.job.place, words) for words in ("one", "two"))
    policy(events).judge(state, InvalidInputError(problems))
    assert events == [SpecProblem(problem) for problem in problems]


def test_a_defect_is_reported_and_tried_again_where_the_engine_stays(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    assert isinstance(policy(events).judge(state, ValueError("x")), float)
    verdict = policy(events, StopCondition(False, 1.0)).judge(state, ValueError("x"))
    assert isinstance(verdict, EngineError)
    assert str(verdict).startswith("internal error: ValueError")
    assert [type(event) for event in events] == [InternalError, InternalError]
