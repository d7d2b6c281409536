from typing import Any

import pytest

from engine.api.model import Job, PullClass, PullSettings
from engine.lifecycle.actions import CreatePod, DeletePod, FindPullCause, Wait
from engine.lifecycle.record import Record
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import NOW, act, at, attempt, record, written
from tests.unit.pods import UID, job_pod, running, waiting

TWO = make_job(pullPolicy=["Always", "IfNotPresent"])
GONE = "manifest unknown: not found"
DOWN = "dial tcp 127.0.0.1:5000: connect: connection refused"
NO_LOGIN = "pull access denied: authorization failed"
BACK_OFF = 'Back-off pulling image "main:1"'
REDIS = {"name": "redis", "image": "redis:7"}
PENDING: dict[str, Any] = {"phase": "Pending"}


def failing(job: Job, number: int = 1, words: str = GONE, **policies: str) -> dict[str, Any]:
    """The pod of an attempt whose main container can't get its image."""
    uid = f"uid-{number}"
    state = waiting("ErrImagePull", words)
    return job_pod(job, state, attempt=number, uid=uid, policies=policies, **PENDING)


def after(job: Job, *messages: str, **more: Any) -> Record:
    """The record after attempts whose main container failed with these words, one after another."""
    known: Record | None = None
    for number, words in enumerate(messages, 1):
        pod = failing(job, number, words, main=job.policies.get("main", ("",))[0])
        known = written(job, known, pod, settled=[f"uid-{number}"], **more)
        known = written(job, known, pod, **more)
    assert known is not None
    return known


def test_a_failed_pull_moves_on_to_the_next_policy() -> None:
    known = after(TWO, GONE)
    assert known.state is State.STARTING
    (closed,) = known.attempts
    assert closed.outcome is Reason.IMAGE_PULL_FAILED
    assert closed.message == f"main: image main:1: {GONE}"
    assert closed.pull_class is PullClass.NOT_FOUND
    assert act(TWO, known) == CreatePod(2, {"main": "IfNotPresent"}, ("main:1",))


def test_the_pod_of_the_failed_attempt_goes_before_the_next_begins() -> None:
    action = act(TWO, after(TWO, GONE), failing(TWO))
    assert action == DeletePod(f"build-{TWO.run}-1", "uid-1", 0, "its attempt is over")


def test_always_twice_is_a_retry() -> None:
    job = make_job(pullPolicy=["Always", "Always"])
    known = after(job, DOWN)
    assert act(job, known) == CreatePod(2, {"main": "Always"})
    over = after(job, DOWN, DOWN)
    assert (over.state, over.reason) == (State.FAILED, Reason.IMAGE_PULL_FAILED)


def test_when_no_policy_is_left_every_attempt_is_listed() -> None:
    over = after(TWO, DOWN, GONE)
    assert over.state is State.FAILED
    assert over.reason is Reason.IMAGE_PULL_FAILED
    first, second = f"image main:1: {DOWN}", f"image main:1: {GONE}"
    assert over.message == f"attempt 1, main, Always: {first} | attempt 2, main, Always: {second}"
    assert [a.message for a in over.attempts] == [f"main: {first}", f"main: {second}"]


def test_the_image_is_kept_whatever_the_runtime_says_and_told_once() -> None:
    quoted = 'failed to pull image "main:1": not found'
    for words, message in ((GONE, f"image main:1: {GONE}"), (quoted, quoted)):
        (closed,) = after(TWO, words).attempts
        (failure,) = closed.failures
        assert (failure.container, failure.image) == ("main", "main:1")
        assert (failure.message, closed.message) == (words, f"main: {message}")


@pytest.mark.parametrize("policy", [None, "Always", ["Never"]])
def test_one_policy_is_no_list_to_fall_through(policy: Any) -> None:
    over = after(make_job(pullPolicy=policy), GONE)
    assert (over.state, over.reason) == (State.FAILED, Reason.IMAGE_PULL_FAILED)
    assert GONE in over.message


def test_only_who_asks_its_node_for_an_image_that_failed_prefers_one_that_has_it() -> None:
    job = make_job(pullPolicy=["Always", "IfNotPresent", "Always"])
    first = act(job, None)
    second = act(job, after(job, DOWN))
    third = act(job, after(job, DOWN, DOWN))
    assert [a.images for a in (first, second, third) if isinstance(a, CreatePod)] == [
        (),
        ("main:1",),
        (),
    ]


def test_never_falls_through_to_always() -> None:
    job = make_job(pullPolicy=["Never", "Always"])
    words = 'Container image "main:1" is not present with pull policy of Never'
    pod = job_pod(job, waiting("ErrImageNeverPull", words), **PENDING)
    known = written(job, record(attempt(job=job), job=job), pod)
    assert known.state is State.STARTING
    assert known.attempts[0].message == f"main: {words}"
    assert act(job, known) == CreatePod(2, {"main": "Always"})


def test_only_the_failing_container_moves_on() -> None:
    job = make_job(
        pullPolicy=["Always", "IfNotPresent"],
        services=[{**REDIS, "pullPolicy": ["IfNotPresent", "Always"]}],
        initContainers=[{"name": "prepare", "image": "p", "pullPolicy": ["Never", "Always"]}],
    )
    redis_fails = job_pod(
        job, waiting("PodInitializing"), sidecars={"redis": waiting("ErrImagePull", GONE)},
        **PENDING,
    )  # fmt: skip
    known = written(job, record(attempt(job=job), job=job), redis_fails)
    assert known.attempts[0].message == f"redis: image redis:1: {GONE}"
    assert act(job, known) == CreatePod(
        2, {"main": "Always", "redis": "Always", "prepare": "Never"}
    )


def test_two_containers_that_fail_move_on_together() -> None:
    job = make_job(
        pullPolicy=["Always", "Never"], services=[{**REDIS, "pullPolicy": ["Always", "Never"]}]
    )
    both = job_pod(
        job, waiting("ErrImagePull", GONE), others={"redis": waiting("ErrImagePull", DOWN)},
        **PENDING,
    )  # fmt: skip
    known = written(job, record(attempt(job=job), job=job), both)
    told = f"main: image main:1: {GONE}; redis: image redis:1: {DOWN}"
    assert known.attempts[0].message == told
    assert act(job, known) == CreatePod(
        2, {"main": "Never", "redis": "Never"}, ("main:1", "redis:1")
    )


def one_image(job: Job, failing: str, **policies: str) -> dict[str, Any]:
    """The pod of a job whose containers all have the image tool:1; one can't get it."""
    states = {"main": waiting("PodInitializing"), "prepare": waiting("PodInitializing")}
    states[failing] = waiting("ErrImagePull", DOWN)
    pod = job_pod(job, states["main"], init={"prepare": states["prepare"]}, **PENDING)
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        container |= {"image": "tool:1", "imagePullPolicy": policies[container["name"]]}
    for status in (*pod["status"]["initContainerStatuses"], *pod["status"]["containerStatuses"]):
        status["image"] = "tool:1"
    return pod


BOTH = ["Always", "IfNotPresent"]
PREPARE = {"name": "prepare", "image": "tool:1"}


@pytest.mark.parametrize("failing", ["main", "prepare"])
def test_containers_of_one_image_and_policy_fall_back_in_one_attempt(failing: str) -> None:
    job = make_job(image="tool:1", pullPolicy=BOTH, initContainers=[PREPARE])
    pod = one_image(job, failing, main="Always", prepare="Always")
    known = written(job, record(attempt(job=job), job=job), pod)
    assert act(job, known) == CreatePod(
        2, {"main": "IfNotPresent", "prepare": "IfNotPresent"}, ("tool:1",)
    )
    (closed,) = known.attempts
    assert closed.message == f"{failing}: image tool:1: {DOWN}"
    own, moved = closed.failures
    assert (own.container, own.message) == (failing, DOWN)
    assert (moved.message, moved.image, moved.reason) == ("", "tool:1", "ErrImagePull")


def test_a_container_of_the_same_image_keeps_another_policy() -> None:
    init = {**PREPARE, "pullPolicy": BOTH}
    job = make_job(image="tool:1", pullPolicy=["Never", *BOTH], initContainers=[init])
    pod = one_image(job, "prepare", main="Never", prepare="Always")
    known = written(job, record(attempt(job=job), job=job), pod)
    assert act(job, known) == CreatePod(
        2, {"main": "Never", "prepare": "IfNotPresent"}, ("tool:1",)
    )


@pytest.mark.parametrize("only", ["Always", ["Always"]])
def test_a_container_at_the_end_of_its_list_may_yet_get_the_same_image(only: Any) -> None:
    init = {**PREPARE, "pullPolicy": only}
    job = make_job(image="tool:1", pullPolicy=BOTH, initContainers=[init])
    pod = one_image(job, "main", main="Always", prepare="Always")
    known = written(job, record(attempt(job=job), job=job), pod)
    assert act(job, known) == CreatePod(
        2, {"main": "IfNotPresent", "prepare": "Always"}, ("tool:1",)
    )
    assert [failure.container for failure in known.attempts[0].failures] == ["main"]


def test_who_only_moved_along_is_no_cause_at_the_end() -> None:
    job = make_job(image="tool:1", pullPolicy=BOTH, initContainers=[PREPARE])
    pod = one_image(job, "prepare", main="Always", prepare="Always")
    begun = attempt(job=job, policies=dict.fromkeys(job.policies, "Always"))
    known = written(job, record(begun, job=job), pod)
    last = one_image(job, "prepare", main="IfNotPresent", prepare="IfNotPresent")
    last["metadata"] |= {"uid": "uid-2", "name": f"build-{job.run}-2"}
    last["metadata"]["labels"]["jobs.engine/attempt"] = "2"
    known = written(job, known, last, settled=["uid-2"])
    over = written(job, known, last)
    assert (over.state, over.reason) == (State.FAILED, Reason.IMAGE_PULL_FAILED)
    assert over.message == (
        f"attempt 1, prepare, Always: image tool:1: {DOWN} | "
        f"attempt 2, prepare, IfNotPresent: image tool:1: {DOWN}"
    )


def test_one_container_without_a_way_out_ends_the_job() -> None:
    job = make_job(pullPolicy=["Always", "Never"], services=[{**REDIS, "pullPolicy": "Always"}])
    both = job_pod(
        job, waiting("ErrImagePull", GONE), others={"redis": waiting("ErrImagePull", DOWN)},
        **PENDING,
    )  # fmt: skip
    assert written(job, record(attempt(job=job), job=job), both).state is State.FAILED


def test_a_service_that_fails_while_the_job_runs_falls_back_too() -> None:
    job = make_job(services=[{**REDIS, "pullPolicy": ["Always", "Never"]}])
    pod = job_pod(job, running(), others={"redis": waiting("ImagePullBackOff", DOWN)})
    known = written(job, record(attempt(job=job), job=job), pod)
    assert act(job, known) == CreatePod(2, {"redis": "Never"}, ("redis:1",))


# The first real message


def test_back_off_sends_for_the_cause() -> None:
    pod = job_pod(TWO, waiting("ImagePullBackOff", BACK_OFF), **PENDING)
    known = record(attempt(job=TWO), job=TWO)
    assert act(TWO, known, pod) == FindPullCause(f"build-{TWO.run}-1", UID, "main", "main:1")


def test_the_remembered_cause_is_recorded_never_the_back_off() -> None:
    pod = job_pod(TWO, waiting("ImagePullBackOff", BACK_OFF), **PENDING)
    known = record(attempt(job=TWO), job=TWO)
    made = written(TWO, known, pod, causes={(UID, "main"): DOWN})
    assert made.attempts[0].message == f"main: image main:1: {DOWN}"
    assert made.attempts[0].pull_class is PullClass.TRANSIENT


def test_the_first_message_wins_over_a_later_one() -> None:
    pod = job_pod(TWO, waiting("ErrImagePull", "something else"), **PENDING)
    made = written(TWO, record(attempt(job=TWO), job=TWO), pod, causes={(UID, "main"): DOWN})
    assert made.attempts[0].message == f"main: image main:1: {DOWN}"


def test_the_kubelets_own_limit_costs_no_policy() -> None:
    pod = job_pod(TWO, waiting("ErrImagePull", "pull QPS exceeded"), **PENDING)
    assert act(TWO, record(attempt(job=TWO), job=TWO), pod) == Wait(at(580))


# What the operator sets


@pytest.mark.parametrize(
    ("fallback_on", "words", "goes_on"),
    [
        ({"transient"}, DOWN, True),
        ({"transient"}, GONE, False),
        ({"notFound", "other"}, GONE, True),
        ({"notFound", "other"}, "invalid tar header", True),
        ({"notFound", "other"}, NO_LOGIN, False),
        ((), DOWN, False),
    ],
)
def test_only_the_wanted_classes_fall_back(fallback_on: Any, words: str, goes_on: bool) -> None:
    pull = PullSettings(frozenset(fallback_on))
    known = after(TWO, words, pull=pull)
    assert known.state is (State.STARTING if goes_on else State.FAILED)


def test_within_the_grace_the_kubelet_may_still_succeed() -> None:
    pull, since = PullSettings(grace=30.0), {("uid-1", "main"): at(-10)}
    known = record(attempt(uid="uid-1", job=TWO), job=TWO)
    assert act(TWO, known, failing(TWO), pull=pull, since=since) == Wait(at(20))
    made = written(TWO, known, failing(TWO), pull=pull, since=since, now=at(20))
    assert made.attempts[0].outcome is Reason.IMAGE_PULL_FAILED


def test_the_grace_is_each_containers_own() -> None:
    job = make_job(services=[{**REDIS, "pullPolicy": ["Always", "Never"]}])
    pod = job_pod(
        job, waiting("ErrImagePull", GONE), others={"redis": waiting("ErrImagePull", DOWN)},
        **PENDING,
    )  # fmt: skip
    since = {(UID, "main"): NOW, (UID, "redis"): at(-30)}
    made = written(
        job, record(attempt(job=job), job=job), pod, pull=PullSettings(grace=30.0), since=since
    )
    assert [f.container for f in made.attempts[0].failures] == ["redis"]
