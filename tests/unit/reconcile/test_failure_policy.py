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
from engine.reconcile.failure_policy import judge_failure
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


def judge(
    events: list[Event], state: TrackedJob, error: Exception, retry_timeout: float | None = None
) -> float | EngineError:
    supervisor = Supervisor(events.append)
    return judge_failure(state, error, retry_timeout, supervisor)


def test_what_trying_again_may_mend_is_reported_at_the_third_failure_in_a_row(
    events: list[Event],
) -> None:
    state = TrackedJob(make_job())
    for _ in range(2):
        judge(events, state, BUSY)
    state.failures = 0
    for _ in range(2):
        judge(events, state, BUSY)
    assert events == []
    for _ in range(3):
        judge(events, state, BUSY)
    assert events == [ErrorReported(state.job.key, str(BUSY), retrying=True)]


def test_a_server_is_asked_again_no_sooner_than_it_said(events: list[Event]) -> None:
    assert judge(events, TrackedJob(make_job()), BUSY) == 7.0


def test_what_trying_again_cannot_mend_is_reported_at_once_and_once(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    waits = [judge(events, state, FORBIDDEN) for _ in range(3)]
    assert events == [ErrorReported(state.job.key, str(FORBIDDEN), retrying=True)]
    assert all(isinstance(wait, float) for wait in waits)


def test_a_job_starts_within_half_a_minute_of_the_namespace_that_it_lacked(
    events: list[Event],
) -> None:
    state = TrackedJob(make_job())
    waits = [judge(events, state, MISSING) for _ in range(20)]
    assert max(wait for wait in waits if isinstance(wait, float)) < 30
    assert events == [ErrorReported(state.job.key, str(MISSING), retrying=True)]


def test_an_engine_that_does_not_stay_gives_up_what_it_cannot_mend(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    verdict = judge(events, state, FORBIDDEN, 300.0)
    assert verdict is FORBIDDEN
    assert events == [ErrorReported(state.job.key, str(FORBIDDEN), retrying=False)]


def test_it_gives_up_what_fails_for_too_long(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    assert judge(events, state, BUSY, -1.0) is BUSY


def test_each_problem_of_a_spec_is_reported(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    problems = tuple(Diagnostic(state.job.place, words) for words in ("one", "two"))
    judge(events, state, InvalidInputError(problems))
    assert events == [SpecProblem(problem) for problem in problems]


def test_a_defect_is_reported_and_tried_again_where_the_engine_stays(events: list[Event]) -> None:
    state = TrackedJob(make_job())
    assert isinstance(judge(events, state, ValueError("x")), float)
    verdict = judge(events, state, ValueError("x"), 300.0)
    assert isinstance(verdict, EngineError)
    assert str(verdict).startswith("internal error: ValueError")
    assert [type(event) for event in events] == [InternalError, InternalError]
