"""A run waits for what its spec names, and fails with it; tests of any order are the machine's."""

from msgspec.structs import replace

from engine.lifecycle.actions import (
    Action,
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    ReportError,
    Wait,
    WriteRecord,
)
from engine.lifecycle.change_reason import PlannedAction, planned_action
from engine.lifecycle.predecessors import Predecessor
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.lifecycle.state import LifecycleState
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, NOW, attempt, finished, make_state, quota, record
from tests.unit.pods import UID, job_pod, running

LINT, TEST = JobKey("ci", "lint"), JobKey("ci", "test")
PENDING = Predecessor(LINT, may_fail=False, ended=None)
SUCCESS = replace(PENDING, ended=finished())
FAILURE = replace(PENDING, ended=finished(Reason.SCRIPT_FAILED))


def state(
    known: Record | None, *others: Predecessor, pods: tuple[dict[str, object], ...] = ()
) -> LifecycleState:
    made = make_state(JOB, known, *pods)
    made.observed.predecessors = others
    return made


def after(known: Record | None, *others: Predecessor) -> Record:
    action = decide(state(known, *others))
    assert isinstance(action, WriteRecord), action
    return action.record


def test_a_job_is_queued_and_its_message_names_what_it_waits_for() -> None:
    waiting = after(None, PENDING, replace(PENDING, key=TEST))
    assert (waiting.state, waiting.message) == (State.QUEUED, "waits for ci/lint, ci/test")
    assert decide(state(waiting, PENDING, replace(PENDING, key=TEST))) == Wait()
    fewer = after(waiting, SUCCESS, replace(PENDING, key=TEST))
    assert fewer.message == "waits for ci/test"
    assert isinstance(decide(state(fewer, SUCCESS)), CreatePod)


def test_the_pod_of_a_job_that_waits_for_nothing_any_more_is_recorded() -> None:
    made = state(None, SUCCESS, pods=(job_pod(JOB, gated=True),))
    assert isinstance(decide(made), CreateDependents)


def test_of_many_the_last_one_is_named_so_that_few_of_their_ends_are_a_write() -> None:
    others = [replace(PENDING, key=JobKey("ci", f"j{n}")) for n in range(5)]
    waiting = after(None, *others)
    assert waiting.message == "waits for ci/j4 and others"
    ended = [replace(one, ended=finished()) for one in others]
    assert decide(state(waiting, *ended[:3], *others[3:])) == Wait()
    assert after(waiting, *ended[:4], others[4]).message == "waits for ci/j4"


def test_a_failure_fails_it_at_once_unless_it_may_fail() -> None:
    failed = after(None, FAILURE, replace(PENDING, key=TEST))
    assert (failed.state, failed.reason) == (State.FAILED, Reason.DEPENDENCY_FAILED)
    assert failed.message == "ci/lint failed (ScriptFailed)"
    assert decide(state(failed, FAILURE)) == Done()
    assert isinstance(decide(state(None, replace(FAILURE, may_fail=True))), CreatePod)
    cancelled = replace(PENDING, ended=finished(Reason.CANCELLED))
    assert after(None, cancelled).message == "ci/lint was cancelled"


def test_what_failed_with_another_job_goes_on_with_its_next_run() -> None:
    failed = replace(after(None, FAILURE), version="7")
    again = after(failed, PENDING)
    assert (again.state, again.reason, again.finished_at) == (State.QUEUED, None, None)
    reopened = after(failed, SUCCESS)
    assert (reopened.state, reopened.message) == (State.QUEUED, "")
    assert isinstance(decide(state(reopened, SUCCESS)), CreatePod)


def test_what_has_begun_waits_for_nothing() -> None:
    for known in (record(attempt()), finished(), finished(Reason.SCRIPT_FAILED)):
        others = decide(state(known, PENDING)), decide(state(known, FAILURE))
        assert others == (decide(state(known)),) * 2


def test_what_is_over_without_an_attempt_stays_over_whatever_it_would_wait_for() -> None:
    for over in (record().cancelled("", NOW), record().as_completed(JOB.spec_hash, "", "", NOW)):
        assert decide(state(over, PENDING)) == Done()
        assert decide(state(over, FAILURE)) == Done()


def test_a_pod_that_was_made_in_time_and_not_recorded_goes() -> None:
    action: Action = decide(state(None, PENDING, pods=(job_pod(JOB, gated=True),)))
    assert isinstance(action, DeletePod)


def test_a_pod_in_no_record_is_told_while_it_waits_and_not_when_it_begins() -> None:
    waiting = replace(after(None, PENDING), version="7")
    stranger = state(waiting, PENDING, pods=(job_pod(JOB, running()),))
    stranger.observed.created = {}
    assert isinstance(decide(stranger), ReportError)
    gated = state(waiting, PENDING, pods=(job_pod(JOB, gated=True),))
    gated.observed.created = {}
    given_up = decide(gated)
    assert isinstance(given_up, WriteRecord)
    assert given_up.record.discarded == UID


def test_it_has_no_place_in_a_quotas_line_while_it_waits() -> None:
    known = make_state(JOB, None, rejection=quota()).queued(record(), quota())
    waiting = after(replace(known, attempts=()), PENDING)
    assert (waiting.queued_at, waiting.refused) == (None, "")
    assert after(replace(waiting, queued_at=NOW), PENDING).queued_at is None


def test_a_plan_says_that_it_will_start() -> None:
    found = state(None, PENDING)
    assert planned_action(found, decide(found)) is PlannedAction.START
    found = state(None, FAILURE)
    assert planned_action(found, decide(found)) is PlannedAction.CONTINUE
    assert make_job().depends_on == ()
