from msgspec.structs import replace

from engine.lifecycle.actions import (
    CreateDependents,
    CreatePod,
    DeletePod,
    RefreshPod,
    RemoveSchedulingGate,
    Wait,
    WriteRecord,
)
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.refs import GATE
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import (
    JOB,
    NOW,
    SOURCE,
    act,
    at,
    attempt,
    make_state,
    record,
    written,
)
from tests.unit.pods import UID, ended, job_pod, running, waiting

POD = f"build-{JOB.run}-1"
GATED = job_pod(JOB, gated=True)


def test_a_fresh_job_begins_with_its_pod() -> None:
    assert act() == CreatePod(1, {})


def test_the_pod_gets_the_first_policy_of_every_container() -> None:
    job = make_job(
        pullPolicy=["Always", "IfNotPresent"],
        services=[{"name": "redis", "image": "r", "pullPolicy": "Never"}],
    )
    assert act(job) == CreatePod(1, {"main": "Always", "redis": "Never"})


def test_a_gated_pod_gets_its_dependents_next() -> None:
    assert act(JOB, None, GATED) == CreateDependents(POD, UID, 1, {})


def test_only_then_is_the_run_recorded() -> None:
    gated = job_pod(JOB, gated=True, policies={"main": "Always"})
    made = written(JOB, None, gated, settled=[UID])
    assert made.state is State.STARTING
    assert (made.key, made.source, made.spec_hash) == (JOB.key, SOURCE, JOB.spec_hash)
    assert made.queued_at == NOW
    (begun,) = made.attempts
    assert (begun.number, begun.pod, begun.uid) == (1, POD, UID)
    assert begun.policies == {"main": "Always"}
    assert begun.outcome is None


def test_the_record_says_which_defaults_the_attempt_has() -> None:
    job = replace(JOB, defaulted_fields="spec.image=0a1b2c3d")
    begun = written(job, None, job_pod(job, gated=True), settled=[UID])
    assert begun.defaulted_fields == job.defaulted_fields


def test_the_record_names_the_process_that_began_the_attempt() -> None:
    state = make_state(JOB, None, job_pod(JOB, gated=True), settled=[UID])
    action = decide(replace(state, engine="node-1_7"))
    assert isinstance(action, WriteRecord)
    assert action.record.engine == "node-1_7"


def test_only_a_recorded_run_is_let_go() -> None:
    assert act(JOB, record(attempt()), GATED, settled=[UID]) == RemoveSchedulingGate(POD, UID, 0, 1)


def test_a_pod_that_refers_to_a_secret_that_isnt_there_is_not_let_go() -> None:
    missing = {UID: 'main: secret "ci" not found'}
    over = written(JOB, record(attempt()), GATED, settled=[UID], missing=missing)
    assert over.state is State.FAILED
    assert over.attempts[0].outcome is over.reason is Reason.CONTAINER_CONFIG_ERROR
    assert over.message == 'main: secret "ci" not found'
    assert act(JOB, over, GATED) == DeletePod(
        POD, UID, 0, "its attempt ended: ContainerConfigError"
    )


def test_nor_is_it_where_another_attempt_is_to_follow() -> None:
    job = make_job(retry={"max": 1, "on": ["ContainerConfigError"]})
    missing = {UID: 'main: secret "ci" not found'}
    first = record(attempt(job=job), job=job)
    again = written(job, first, job_pod(job, gated=True), settled=[UID], missing=missing)
    assert again.state is State.STARTING
    assert isinstance(act(job, again, job_pod(job, gated=True)), DeletePod)


def test_the_engines_gate_is_found_among_others() -> None:
    gates = [{"name": "example.com/first"}, {"name": GATE}, {"name": "example.com/last"}]
    gated = job_pod(JOB, gated=True)
    gated["spec"]["schedulingGates"] = gates
    assert act(JOB, record(attempt()), gated, settled=[UID]) == RemoveSchedulingGate(POD, UID, 1, 3)


def test_an_ungated_pod_is_waited_for_until_it_must_have_started() -> None:
    pod = job_pod(JOB, waiting("ContainerCreating"), phase="Pending")
    assert act(JOB, record(attempt()), pod) == Wait(at(600 - 20))


def test_a_running_job_is_written_down_as_running_once_it_has_run_a_moment() -> None:
    pod = job_pod(JOB, running())
    assert act(JOB, record(attempt()), pod, now=at(-9)) == Wait(at(-8))
    made = written(JOB, record(attempt()), pod, now=at(-8))
    assert made.state is State.RUNNING
    assert made.started_at == made.attempts[0].started_at == at(-10)


def test_a_container_that_runs_since_an_unknown_time_runs_since_now() -> None:
    pod = job_pod(JOB, {"running": {}})
    assert act(JOB, record(attempt()), pod) == Wait(at(2))


def test_a_job_that_is_recorded_as_running_is_not_written_again() -> None:
    known = written(JOB, record(attempt()), job_pod(JOB, running()))
    assert act(JOB, known, job_pod(JOB, running())) == Wait()


def test_an_init_container_counts_as_a_start() -> None:
    pod = job_pod(JOB, waiting("PodInitializing"), init={"prepare": running()}, phase="Pending")
    assert written(JOB, record(attempt()), pod).state is State.RUNNING


def test_a_sidecar_alone_is_no_start() -> None:
    pod = job_pod(JOB, waiting("PodInitializing"), sidecars={"redis": running()}, phase="Pending")
    assert act(JOB, record(attempt()), pod) == Wait(at(580))


def test_a_run_begins_with_its_first_init_container_that_is_no_sidecar() -> None:
    sidecar = {"running": {"startedAt": "2026-01-01T12:00:02Z"}}
    waits = waiting("PodInitializing")
    pod = job_pod(JOB, waits, sidecars={"redis": sidecar}, init={"first": running()})
    assert written(JOB, record(attempt()), pod).started_at == at(-10)


def test_the_time_to_start_counts_from_the_pods_creation_where_the_record_has_no_other() -> None:
    pod = job_pod(JOB, waiting("ContainerCreating"), phase="Pending")
    known = record(replace(attempt(), claimed_at=None))
    assert act(JOB, known, pod) == Wait(at(600 - 20))


# A crash between any two steps


def test_an_engine_that_died_after_the_create_adopts_the_gated_pod() -> None:
    """No record, nothing known to be settled: steps 2 to 4 again."""
    assert act(JOB, None, GATED) == CreateDependents(POD, UID, 1, {})
    assert isinstance(act(JOB, None, GATED, settled=[UID]), WriteRecord)


def test_an_engine_that_died_after_the_record_looks_at_the_dependents_again() -> None:
    assert act(JOB, record(attempt()), GATED) == CreateDependents(POD, UID, 1, {})


def test_a_gated_pod_that_is_gone_and_not_recorded_is_created_again() -> None:
    assert act(JOB, None) == CreatePod(1, {})


def test_a_recorded_pod_is_not_believed_gone_before_the_api_says_so() -> None:
    assert act(JOB, record(attempt())) == RefreshPod(POD, UID)


def test_a_gated_pod_under_deletion_is_waited_for() -> None:
    dying = job_pod(JOB, gated=True, deleted="2026-01-01T12:00:15Z")
    assert act(JOB, None, dying) == Wait()
    assert act(JOB, record(attempt()), dying, settled=[UID]) == Wait()


def test_a_pod_that_ended_before_it_was_recorded_is_recorded_then_closed() -> None:
    pod = job_pod(JOB, ended(0), phase="Succeeded")
    first = written(JOB, None, pod)
    assert first.open_attempt is not None
    assert written(JOB, first, pod).state is State.SUCCEEDED


def test_a_retry_is_recorded_with_the_fields_that_it_was_made_with() -> None:
    tried = record(attempt(outcome=Reason.EVICTED), spec_fields="timeout=aaaaaaaa")
    gated = job_pod(JOB, gated=True, attempt=2, uid="uid-2")
    assert written(JOB, tried, gated, settled=["uid-2"]).spec_fields == JOB.spec_fields


def test_a_job_runs_since_its_init_container_began_also_once_that_is_over() -> None:
    init = ended(0)
    init["terminated"]["startedAt"] = "2026-01-01T12:00:05Z"
    pod = job_pod(JOB, waiting("PodInitializing"), init={"prepare": init}, phase="Pending")
    assert written(JOB, record(attempt()), pod).started_at == at(-15)


# An engine that was away


def test_the_time_that_no_engine_looked_is_not_the_pods_time_to_start() -> None:
    gated = job_pod(JOB, gated=True)
    made = written(JOB, None, gated, settled=[UID], now=at(900))
    assert isinstance(act(JOB, made, gated, settled=[UID], now=at(900)), RemoveSchedulingGate)
    assert isinstance(act(JOB, made, job_pod(JOB, phase="Pending"), now=at(900)), Wait)


def test_a_recorded_pod_that_waited_for_its_engine_starts_its_time_anew() -> None:
    gated = job_pod(JOB, gated=True)
    again = written(JOB, record(attempt()), gated, settled=[UID], now=at(900))
    assert isinstance(act(JOB, again, gated, settled=[UID], now=at(900)), RemoveSchedulingGate)
    assert isinstance(act(JOB, again, job_pod(JOB, phase="Pending"), now=at(900)), Wait)


def test_an_absence_of_a_tenth_of_the_time_to_start_is_not_written_down() -> None:
    gated = job_pod(JOB, gated=True)
    for now, action in ((at(40), RemoveSchedulingGate), (at(41), WriteRecord)):
        assert isinstance(act(JOB, record(attempt()), gated, settled=[UID], now=now), action)


# Two pods


def test_an_unfinished_pod_of_an_earlier_attempt_goes_first() -> None:
    closed = attempt(outcome=Reason.IMAGE_PULL_FAILED, finished_at=at(-1))
    stuck = job_pod(JOB, waiting("ErrImagePull", "x"), phase="Pending")
    action = act(JOB, record(closed), stuck)
    assert action == DeletePod(POD, UID, 0, "its attempt is over")


def test_a_pod_under_deletion_is_waited_for_before_the_next_attempt() -> None:
    closed = attempt(outcome=Reason.IMAGE_PULL_FAILED, finished_at=at(-1))
    dying = job_pod(
        JOB, waiting("ErrImagePull", "x"), phase="Pending", deleted="2026-01-01T12:00:15Z"
    )
    assert act(JOB, record(closed), dying) == Wait()


def test_each_pod_is_given_a_higher_fence_than_all_before_it() -> None:
    first = act(JOB, None)
    assert isinstance(first, CreatePod)
    pod = job_pod(JOB, gated=True)
    known = written(JOB, None, pod, settled=[UID], now=at(3))
    assert first.fence == int(NOW.timestamp())
    assert known.fence >= first.fence
    changed = make_job(image="x:2")
    following = known.run_of(changed)
    assert following.next_fence(NOW) > known.fence, "whatever the clock says"
    assert Record(JOB.key, SOURCE, "a" * 64).next_fence(at(60)) > known.fence, "nor is it forgotten"
