from typing import Any

import pytest
from msgspec.structs import replace

from engine.lifecycle.actions import CreatePod, DeletePod, Done, RefreshPod, Wait
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, act, at, attempt, finished, make_state, record, written
from tests.unit.pods import UID, ended, job_pod, running, waiting

NEW = make_job(script="make other\n")
NEW_WAITS = make_job(script="make other\n", onChange="Wait")
RERUN = make_job(rerun="2")
OLD_POD = f"build-{JOB.run}-1"
OLD = record(attempt())


def test_another_spec_is_another_run() -> None:
    assert len({JOB.run, NEW.run, RERUN.run}) == 3
    assert NEW_WAITS.run == NEW.run  # onChange says how a job is tried


def test_a_changed_spec_of_a_finished_job_starts_a_new_run() -> None:
    assert act(NEW, finished()) == CreatePod(1, {})


def test_a_rerun_token_starts_the_same_spec_again() -> None:
    assert act(JOB, finished()) == Done()
    assert act(RERUN, finished()) == CreatePod(1, {})


def test_the_new_run_has_the_old_one_in_its_history() -> None:
    pod = job_pod(NEW, gated=True)
    begun = written(NEW, finished(Reason.SCRIPT_FAILED), pod, settled=[UID])
    assert begun.spec_hash == NEW.spec_hash
    assert begun.version == "7"
    assert [a.number for a in begun.attempts] == [1]
    (past,) = begun.history
    assert (past.run, past.state, past.reason) == (JOB.run, State.FAILED, Reason.SCRIPT_FAILED)


def test_the_history_keeps_the_last_five_runs() -> None:
    known = finished()
    for number in range(8):
        job = make_job(rerun=str(number))
        pod = job_pod(job, gated=True)
        begun = written(job, known, pod, settled=[UID])
        known = replace(begun, state=State.SUCCEEDED, attempts=())
    assert len(known.history) == 5
    assert known.history[0].run == make_job(rerun="6").run


def test_the_operator_says_how_many_past_runs_are_kept() -> None:
    known = finished()
    for number in range(4):
        known = replace(known.next_run(make_job(rerun=str(number)).spec_hash), version="7")
    asked = replace(make_state(NEW, known), kept_runs=2)
    assert len(asked.run_record.history) == 2
    again = replace(make_state(JOB, replace(known, spec_hash=JOB.spec_hash)), kept_runs=2)
    assert [past.run for past in again.run_record.history] == [p.run for p in known.history[:2]]


def test_a_finished_pod_of_the_old_run_may_stay() -> None:
    old = job_pod(JOB, ended(0), phase="Succeeded")
    assert act(NEW, finished(), old) == CreatePod(1, {})


def test_a_running_job_is_replaced_only_after_its_pod_is_gone() -> None:
    old = job_pod(JOB, running())
    cancelled = written(NEW, OLD, old)
    assert (cancelled.state, cancelled.reason) == (State.CANCELLED, Reason.SUPERSEDED)
    assert cancelled.message == f"run {NEW.run} replaced it: spec changed"
    assert cancelled.spec_hash == JOB.spec_hash
    assert act(NEW, cancelled, old) == DeletePod(OLD_POD, UID, None, "its spec has changed")
    dying = job_pod(JOB, running(), deleted="2026-01-01T12:00:50Z")
    assert act(NEW, cancelled, dying) == Wait()
    assert act(NEW, cancelled) == CreatePod(1, {})


def test_a_pod_whose_phase_has_yet_to_follow_its_end_keeps_its_log() -> None:
    ended_a_moment_ago = job_pod(JOB, ended(0), sidecars={"redis": running()})
    assert act(NEW, finished(), ended_a_moment_ago) == Wait()


def test_on_change_wait_lets_the_old_run_end() -> None:
    assert act(NEW_WAITS, OLD, job_pod(JOB, running())) == Wait()
    done = job_pod(JOB, ended(3), phase="Failed")
    over = written(NEW_WAITS, OLD, done)
    assert (over.reason, over.spec_hash) == (Reason.SCRIPT_FAILED, JOB.spec_hash)
    assert act(NEW_WAITS, over, done) == CreatePod(1, {})


def test_on_change_wait_waits_out_the_delay_of_a_retry() -> None:
    failed = attempt(outcome=Reason.SCRIPT_FAILED, finished_at=at(-1), retry_at=at(4))
    assert act(NEW_WAITS, record(failed)) == Wait(at(4))
    assert act(NEW_WAITS, record(failed), now=at(4)) == CreatePod(1, {})
    assert act(NEW, record(failed)) == CreatePod(1, {})
    over = finished(Reason.SCRIPT_FAILED)
    given_up = replace(over, attempts=(replace(over.attempts[0], retry_at=at(4)),))
    assert act(NEW_WAITS, given_up) == CreatePod(1, {})


def test_on_change_wait_ends_when_the_old_pod_is_gone() -> None:
    assert act(NEW_WAITS, OLD) == RefreshPod(OLD_POD, UID)
    assert written(NEW_WAITS, OLD, gone=[UID]).reason is Reason.POD_DELETED


def test_a_run_whose_pod_somebody_deletes_has_not_failed_of_it() -> None:
    killed = job_pod(JOB, ended(143), phase="Failed", deleted="2026-01-01T12:00:50Z")
    assert act(NEW_WAITS, OLD, killed) == Wait()
    assert written(NEW_WAITS, OLD, gone=[UID]).reason is Reason.POD_DELETED
    assert written(NEW, OLD, killed).reason is Reason.SUPERSEDED


def test_on_change_wait_does_not_wait_for_a_pod_that_can_never_start() -> None:
    stuck = job_pod(JOB, waiting("InvalidImageName", "x"), phase="Pending")
    over = written(NEW_WAITS, OLD, stuck)
    assert over.state.is_final


@pytest.mark.parametrize(
    "main",
    [
        waiting("ImagePullBackOff", "Back-off pulling image"),
        waiting("InvalidImageName", "x"),
        waiting("CreateContainerError", "no such file"),
    ],
)
def test_on_change_wait_does_not_wait_for_a_main_container_that_cannot_begin(
    main: dict[str, Any],
) -> None:
    prepared = {"setup": ended(0)}
    stuck = job_pod(JOB, main, init=prepared, phase="Pending")
    assert written(NEW_WAITS, OLD, stuck).state is State.CANCELLED
    about_to = job_pod(JOB, waiting("PodInitializing"), init=prepared, phase="Pending")
    assert act(NEW_WAITS, OLD, about_to) == Wait()


def test_on_change_wait_waits_for_main_whatever_a_service_lacks() -> None:
    lacks = {"redis": waiting("ImagePullBackOff", "Back-off pulling image")}
    assert act(NEW_WAITS, OLD, job_pod(JOB, running(), others=lacks)) == Wait()


def test_an_outcome_of_the_old_run_is_not_lost_by_a_replacement() -> None:
    done = job_pod(JOB, ended(0), phase="Succeeded")
    assert written(NEW, OLD, done).reason is Reason.SUCCEEDED


def test_a_gated_pod_that_no_record_knows_goes_with_its_old_spec() -> None:
    gated = job_pod(JOB, gated=True)
    assert act(NEW, None, gated) == DeletePod(OLD_POD, UID, 0, "its spec has changed")


def test_a_queued_run_is_replaced_without_a_pod() -> None:
    queued = replace(record(), state=State.QUEUED)
    assert act(NEW, queued) == CreatePod(1, {})
