"""Who goes first for an image, who waits, and when that is over."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from engine.api.model import Job, PullClass
from engine.lifecycle.record import Record
from engine.reconcile.pull_scout import PullScout, pull_keys
from engine.refs import JobKey
from engine.render.manifests import SecretValues
from engine.status.outcome import Reason
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import NOW, PULL_FAILURE, at, attempt, make_state, record
from tests.unit.pods import job_pod, running, waiting


def job(name: str, **spec: Any) -> Job:
    return make_job(name, **spec)


A, B, C = job("a"), job("b"), job("c")


class Scouts:
    """A scout, and who was woken."""

    def __init__(self) -> None:
        self.woken: list[JobKey] = []
        self.scout = PullScout(self.woken.append)

    def claims(self, job: Job, now: datetime = NOW, number: int = 1) -> bool:
        return self.scout.claim(job, number, pull_keys(job, {}, SecretValues()), now)

    def waits(self, job: Job, now: datetime = NOW, number: int = 1) -> bool:
        """Whether it is held back; how another one failed counts as well."""
        keys = pull_keys(job, {}, SecretValues())
        return bool(self.scout.holds(job.key, number, keys, now))

    def sees(self, job: Job, known: Record, *pods: dict[str, Any], now: datetime = NOW) -> None:
        self.scout.observe(job.key, make_state(job, known, *pods, now=now))


def started(job: Job, **more: Any) -> Record:
    return record(attempt(job=job, **more), job=job)


def failed(job: Job, pull_class: PullClass = PullClass.NOT_FOUND) -> Record:
    failure = replace(PULL_FAILURE, pull_class=pull_class)
    return started(job, outcome=Reason.IMAGE_PULL_FAILED, failures=(failure,))


def test_the_first_job_goes_at_once_and_the_others_wait_until_its_container_runs() -> None:
    scouts = Scouts()
    assert not scouts.waits(A)
    assert scouts.claims(A)
    assert scouts.waits(B)
    assert not scouts.claims(B)
    assert not scouts.waits(A)
    scouts.sees(A, started(A), job_pod(A, waiting("ContainerCreating"), phase="Pending"))
    assert scouts.woken == []
    assert scouts.waits(B, at(600)), "as long as it pulls"
    assert scouts.scout.is_awaited(A.key)
    scouts.sees(A, started(A), job_pod(A, running()))
    assert scouts.woken == [B.key, A.key]
    assert not scouts.scout.is_awaited(A.key)
    assert not scouts.waits(B)
    assert scouts.claims(B)
    assert scouts.claims(C), "what is proved needs no scout"


def test_what_was_proved_long_ago_is_proved_anew() -> None:
    scouts = Scouts()
    scouts.claims(A)
    scouts.sees(A, started(A), job_pod(A, running()))
    assert scouts.claims(B, at(299))
    assert not scouts.waits(C, at(299))
    assert scouts.claims(B, at(301))
    assert scouts.waits(C, at(301))


def test_how_the_scout_failed_is_told_to_those_that_waited_and_for_a_moment_to_others() -> None:
    scouts = Scouts()
    scouts.claims(A)
    scouts.waits(B)
    scouts.sees(A, failed(A))
    assert scouts.woken == [B.key, A.key]
    (hold,) = scouts.scout.holds(B.key, 1, pull_keys(B, {}, SecretValues()), at(60))
    assert hold.failure is not None
    assert hold.failure.message == PULL_FAILURE.message
    assert not scouts.waits(B, at(60), number=2), "another try is a try of its own"
    assert scouts.waits(C, at(4))
    assert not scouts.waits(C, at(6)), "the image may be there by now"
    assert scouts.claims(C, at(6))


def test_a_failure_that_may_be_the_nodes_is_nobody_elses() -> None:
    scouts = Scouts()
    scouts.claims(A)
    scouts.waits(B)
    scouts.sees(A, failed(A, PullClass.OTHER))
    assert scouts.woken == [B.key, A.key]
    assert not scouts.waits(B)


def test_nobody_waits_for_a_pod_that_no_node_takes() -> None:
    scouts = Scouts()
    scouts.claims(A)
    unscheduled = job_pod(A)
    unscheduled["spec"].pop("nodeName")
    scouts.sees(A, started(A), unscheduled)
    assert scouts.waits(B, at(2))
    assert not scouts.waits(C, at(4))
    assert scouts.woken == [B.key, A.key], "the scout is awaited no more"


def test_nobody_waits_for_long_for_what_is_pulled_only_once_an_init_container_has_worked() -> None:
    scouts = Scouts()
    scouts.claims(A, at(-10))
    scouts.waits(B, at(-10))
    pod = job_pod(A, waiting("PodInitializing"), init={"prepare": running()})
    scouts.sees(A, started(A), pod, now=at(-9))
    assert scouts.woken == [B.key], "it is to see until when it waits"
    assert scouts.waits(B, at(-1))
    assert not scouts.waits(C, at(1))
    assert scouts.woken == [B.key, B.key, A.key]


def test_what_is_pulled_beside_a_service_that_is_ready_is_waited_for() -> None:
    scouts = Scouts()
    scouts.claims(A, at(-10))
    for is_ready, waits in ((False, False), (True, True)):
        pod = job_pod(A, waiting("PodInitializing"), sidecars={"db": running()})
        pod["status"]["initContainerStatuses"][0]["started"] = is_ready
        scouts.sees(A, started(A), pod, now=at(-9))
        (hold,) = scouts.scout.holds(B.key, 1, pull_keys(B, {}, SecretValues()), at(-9))
        assert (hold.due is None) is waits


def test_a_scout_that_is_removed_or_ends_otherwise_makes_way_for_another() -> None:
    for is_removed in (True, False):
        scouts = Scouts()
        scouts.claims(A)
        scouts.waits(B)
        if is_removed:
            scouts.scout.release(A.key)
        else:
            scouts.sees(A, started(A, outcome=Reason.POD_DELETED))
        assert scouts.woken == [B.key]
        assert scouts.claims(B)
        assert scouts.waits(C)


def test_only_what_is_pulled_in_the_same_way_is_one_pull() -> None:
    def keys(**spec: Any) -> object:
        return pull_keys(job("x", **spec), {}, SecretValues(passwords=("p",)))["main"]

    login = {"registry": "r", "username": "u", "password": {"value": "p"}}
    specs: list[dict[str, Any]] = [
        {}, {"image": "other"}, {"nodeSelector": {"a": "b"}}, {"serviceAccountName": "sa"},
        {"registryCredentials": [login]}, {"podPatch": {"spec": {"priority": 1}}},
    ]  # fmt: skip
    assert len({keys(**spec) for spec in specs}) == len(specs)
    assert keys() == keys(script="echo other")
    one = pull_keys(job("x"), {"main": "Always"}, SecretValues())
    assert one != pull_keys(job("x"), {"main": "IfNotPresent"}, SecretValues())
    assert pull_keys(job("x"), {"main": "Never"}, SecretValues()) == {}
    other = SecretValues(passwords=("q",))
    assert pull_keys(job("x"), {}, other)["main"] != keys()


def test_an_attempt_that_repeats_a_policy_asks_the_registry_again() -> None:
    """The failure is that of the attempt before, also of a job that had none but this."""
    scouts = Scouts()
    assert scouts.claims(A)
    scouts.sees(A, failed(A), now=at(1))
    assert scouts.waits(B, at(2)), "it ends as the scout did"
    assert not scouts.waits(A, at(3), number=2)
    assert not scouts.waits(B, at(3), number=2)
    assert scouts.claims(A, at(3), number=2)
    assert scouts.waits(B, at(3), number=2), "one of them goes first again"
