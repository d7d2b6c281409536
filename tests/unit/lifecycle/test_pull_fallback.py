from typing import Any

import pytest

from engine.api.model import Job, PullClass, PullSettings
from engine.lifecycle.actions import CreatePod, DeletePod, FindPullCause, Wait
from engine.lifecycle.record import Record
from engine.lifecycle.retry import time_left
from engine.status.outcome import Reason, State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import act, at, attempt, record, written
from tests.unit.pods import UID, ended, job_pod, running, waiting

TWO = make_job(pullPolicy=["Always", "IfNotPresent"])
GONE = "manifest unknown: not found"
DOWN = "dial tcp 127.0.0.1:5000: connect: connection refused"
NO_LOGIN = "pull access denied: authorization failed"
LIMITED = "unexpected status from HEAD request to https://r.example/v2/: 429 Too Many Requests"
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
        more["cached"] = {(f"uid-{number}", "main:1"): False}
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


@pytest.mark.parametrize(("words", "least", "most"), [(DOWN, 5, 6), (LIMITED, 30, 36)])
def test_policies_that_repeat_are_never_spent_without_a_wait(
    words: str, least: int, most: int
) -> None:
    job = make_job(pullPolicy=["Always", "Always", "Always"])
    known = after(job, words)
    (retry_at,) = (a.retry_at for a in known.attempts)
    assert retry_at is not None
    assert at(least) <= retry_at <= at(most)
    assert act(job, known) == Wait(retry_at)
    assert act(job, known, now=retry_at) == CreatePod(2, {"main": "Always"})
    third = after(job, words, words).attempts[-1].retry_at
    assert third is not None
    assert at(2 * least) <= third <= at(2 * most)


def test_jobs_that_fail_together_do_not_ask_again_together() -> None:
    jobs = [make_job(name=f"job-{n}", pullPolicy=["Always", "Always"]) for n in range(20)]
    assert len({after(job, LIMITED).attempts[0].retry_at for job in jobs}) == 20


def test_the_same_words_are_told_once() -> None:
    over = after(TWO, GONE, GONE)
    words = f"attempt 1, main, Always: image main:1: {GONE}"
    assert over.message == f"{words} | attempt 2, main, Always: as attempt 1"


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
    second = act(job, after(job, DOWN), now=at(60))
    third = act(job, after(job, DOWN, DOWN), now=at(60))
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
    cached = {("uid-2", "tool:1"): False}
    known = written(job, known, last, settled=["uid-2"])
    over = written(job, known, last, cached=cached, pull=PullSettings(patience=0))
    assert (over.state, over.reason) == (State.FAILED, Reason.IMAGE_PULL_FAILED)
    assert over.message == (
        f"attempt 1, prepare, Always: image tool:1: {DOWN} | "
        "attempt 2, prepare, IfNotPresent: as attempt 1"
    )


def test_one_container_without_a_way_out_ends_the_job() -> None:
    job = make_job(pullPolicy=["Always", "Never"], services=[{**REDIS, "pullPolicy": "Always"}])
    both = job_pod(
        job, waiting("ErrImagePull", DOWN), others={"redis": waiting("ErrImagePull", GONE)},
        **PENDING,
    )  # fmt: skip
    assert written(job, record(attempt(job=job), job=job), both).state is State.FAILED


@pytest.mark.parametrize("policy", ["Always", ["Always", "Never"]])
@pytest.mark.parametrize("where", ["others", "sidecars"])
def test_a_service_that_the_kubelet_starts_again_never_ends_the_main_container_that_runs(
    policy: Any, where: str
) -> None:
    job = make_job(services=[{**REDIS, "pullPolicy": policy}])
    containers: dict[str, Any] = {where: {"redis": waiting("ImagePullBackOff", DOWN)}}
    pod = job_pod(job, running(), **containers)
    known = record(attempt(job=job), job=job, state=State.RUNNING)
    assert act(job, known, pod) == Wait(None)


def test_a_service_that_was_never_there_falls_back_before_main_has_started() -> None:
    job = make_job(services=[{**REDIS, "pullPolicy": ["Always", "Never"]}])
    failed = {"redis": waiting("ImagePullBackOff", DOWN)}
    pod = job_pod(job, waiting("PodInitializing"), sidecars=failed, **PENDING)
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
    pull = PullSettings(frozenset(fallback_on), patience=0)
    known = after(TWO, words, pull=pull)
    assert known.state is (State.STARTING if goes_on else State.FAILED)


# The patience on the last policy

ONE = make_job(pullPolicy="Always")
SAYS = f"waits for the registry: image main:1: {DOWN}"


def waits(job: Job = ONE, **more: Any) -> Record:
    """The record of an attempt whose registry is away, with the first words about it."""
    known = record(attempt(uid="uid-1", job=job), job=job)
    return written(job, known, failing(job, words=DOWN), **more)


@pytest.mark.parametrize("policy", ["Always", ["Always"], None])
def test_a_registry_that_is_away_for_a_moment_never_costs_a_job_its_last_policy(
    policy: Any,
) -> None:
    job = make_job(pullPolicy=policy)
    known = waits(job)
    assert (known.state, known.message) == (State.STARTING, SAYS)
    assert act(job, known, failing(job, words=DOWN)) == Wait(at(120))
    back = job_pod(job, running(), uid="uid-1")
    again = written(job, known, back, now=at(119))
    assert (again.state, again.message) == (State.RUNNING, "")
    assert again.attempts[0].gives_up_at is None


def test_the_wait_is_told_with_the_time_that_is_left() -> None:
    known = waits()
    assert known.message + time_left(known, at(20)) == f"{SAYS}; gives up in 1m40s"


def test_the_patience_has_an_end_and_it_is_the_jobs() -> None:
    over = written(ONE, waits(), failing(ONE, words=DOWN), now=at(120))
    assert (over.state, over.reason) == (State.FAILED, Reason.IMAGE_PULL_FAILED)
    assert over.message == f"attempt 1, main, default policy: image main:1: {DOWN}"


def test_the_patience_ends_with_the_time_to_start() -> None:
    job = make_job(pullPolicy="Always", startTimeout="60s")
    assert act(job, waits(job), failing(job, words=DOWN)) == Wait(at(40))
    assert written(job, waits(job), failing(job, words=DOWN), now=at(40)).reason is (
        Reason.IMAGE_PULL_FAILED
    )


def test_what_has_begun_with_an_init_container_has_the_whole_patience() -> None:
    """It has started in time, however long that was ago."""
    job = make_job(pullPolicy="Always", startTimeout="60s")
    main = waiting("ErrImagePull", DOWN)
    pod = job_pod(job, main, init={"first": ended(0)}, policies={"main": "Always"}, **PENDING)
    known = record(attempt(job=job), job=job)
    waits = written(job, known, pod, now=at(3600))
    assert waits.attempts[0].gives_up_at == at(3600 + 120)


def test_without_patience_the_first_refusal_is_the_end() -> None:
    assert waits(pull=PullSettings(patience=0)).state is State.FAILED


@pytest.mark.parametrize("words", [GONE, NO_LOGIN, "invalid tar header"])
def test_what_no_wait_can_mend_ends_the_job_at_once(words: str) -> None:
    assert after(ONE, words).state is State.FAILED


def test_a_registry_that_is_back_and_refuses_ends_the_wait() -> None:
    over = written(ONE, waits(), failing(ONE, words=NO_LOGIN), now=at(10))
    assert over.attempts[0].pull_class is PullClass.UNAUTHORIZED


def test_an_engine_that_was_away_keeps_the_clock_that_is_in_the_record() -> None:
    known = waits()
    assert act(ONE, known, failing(ONE, words=DOWN), now=at(100)) == Wait(at(120))


def test_a_wait_that_is_over_is_no_longer_told_and_the_next_one_has_its_own_time() -> None:
    between = job_pod(ONE, waiting("PodInitializing"), uid="uid-1", **PENDING)
    known = written(ONE, waits(), between, now=at(60))
    assert (known.message, known.attempts[0].gives_up_at) == ("", None)
    again = written(ONE, known, failing(ONE, words=DOWN), now=at(90))
    assert again.attempts[0].gives_up_at == at(210)


def test_a_container_with_another_policy_does_not_wait_for_one_without() -> None:
    job = make_job(pullPolicy=["Always", "Never"], services=[{**REDIS, "pullPolicy": "Always"}])
    both = job_pod(
        job, waiting("ErrImagePull", DOWN), others={"redis": waiting("ErrImagePull", DOWN)},
        **PENDING,
    )  # fmt: skip
    known = written(job, record(attempt(job=job), job=job), both)
    assert [f.container for f in known.attempts[0].failures] == ["main"]
    assert act(job, known) == CreatePod(2, {"main": "Never", "redis": "Always"}, ("main:1",))


# An image that the node has, and keeps from the pod


@pytest.mark.parametrize("policy", ["IfNotPresent", "Never"])
def test_a_node_that_keeps_its_image_from_a_pod_is_named_with_what_helps(policy: str) -> None:
    job = make_job(pullPolicy=policy)
    pod, known = failing(job, main=policy), record(attempt(uid="uid-1", job=job), job=job)
    look = act(job, known, pod)
    assert look == FindPullCause(f"build-{job.run}-1", "uid-1", "main", "main:1", "node-1")
    over = written(job, known, pod, cached={("uid-1", "main:1"): True})
    assert f"{GONE}; node node-1 has the image, but since Kubernetes 1.35" in over.message
    assert "fromSecret" in over.message
    without = written(job, known, pod, cached={("uid-1", "main:1"): False})
    assert "node-1" not in without.message


def test_a_pod_that_always_asks_the_registry_needs_no_look_at_its_node() -> None:
    known = record(attempt(uid="uid-1", job=ONE), job=ONE)
    assert written(ONE, known, failing(ONE, main="Always")).state is State.FAILED


# With `retry`


def test_a_retry_after_a_failed_pull_begins_with_the_first_policy() -> None:
    job = make_job(pullPolicy=["Always", "IfNotPresent"], retry={"max": 1})
    known = after(job, GONE, GONE)
    assert (known.state, known.attempts[-1].exhausted) == (State.STARTING, True)
    assert known.message == f"attempt 2 of 3 failed: main: image main:1: {GONE}"
    assert act(job, known, now=at(6)) == CreatePod(3, {"main": "Always"})
    assert after(job, GONE, GONE, GONE).state is State.STARTING
    assert after(job, GONE, GONE, GONE, GONE).state is State.FAILED
