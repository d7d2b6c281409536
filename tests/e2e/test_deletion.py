"""A pod that somebody deletes while its job runs, or that is evicted: how the job ends."""

from typing import Any

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import CommandResult, Engine, finish, kill
from tests.support.objects import Objects

pytestmark = pytest.mark.real

DEPENDENTS: dict[str, Any] = {"secrets": {"A": {"value": "anything"}}, "files": {"a": "b"}}
HOLD = "engine.test/hold"
GRACES = {
    "the pod's own": [],
    "1 s": ["--grace-period=1"],
    "5 s": ["--grace-period=5"],
    "30 s": ["--grace-period=30"],
}
FORCED = ["--grace-period=0", "--force"]


def run_until_deleted(
    engine: Engine, objects: Objects, target: ClusterUnderTest, script: str, options: list[str]
) -> tuple[str, CommandResult]:
    """The pod's name, and how the invocation ended that saw its deletion."""
    engine.spec("gone", script=script, **DEPENDENTS)
    process = engine.start()
    pod = objects.wait_until_running("gone")["metadata"]["name"]
    target.delete_pod(pod, *options)
    return pod, finish(process)


def evict(objects: Objects, pod: str, grace: int | None = None) -> None:
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": objects.namespace},
    }
    if grace is not None:
        body["deleteOptions"] = {"gracePeriodSeconds": grace}
    path = f"/api/v1/namespaces/{objects.namespace}/pods/{pod}/eviction"
    answer = objects.api.client.call("POST", path, body)
    assert answer.code == 201, answer.message


def assert_deleted(engine: Engine, objects: Objects, pod: str, run: CommandResult) -> None:
    assert run.code == 7
    job = run.job("gone")
    assert (job["state"], job["reason"]) == ("Failed", "PodDeleted"), job
    assert job["message"] == f'pods "{pod}" not found'
    assert [a["outcome"] for a in job["attempts"]] == ["PodDeleted"]
    assert engine.status()["gone"]["reason"] == "PodDeleted"
    assert objects.pods() == []
    objects.wait_until_clean()


@pytest.mark.parametrize("grace", GRACES)
def test_a_container_that_exits_on_sigterm_was_deleted(
    engine: Engine, objects: Objects, target: ClusterUnderTest, grace: str
) -> None:
    script = target.script("gone", lasts=120)
    pod, run = run_until_deleted(engine, objects, target, script, GRACES[grace])
    assert_deleted(engine, objects, pod, run)


@pytest.mark.parametrize("grace", ["1 s", "5 s"])
def test_a_container_that_has_to_be_killed_was_deleted(
    engine: Engine, objects: Objects, target: ClusterUnderTest, grace: str
) -> None:
    script = target.script("gone", lasts=120, on_term=None)
    pod, run = run_until_deleted(engine, objects, target, script, GRACES[grace])
    assert_deleted(engine, objects, pod, run)


def test_a_forced_deletion_is_a_deletion(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    script = target.script("gone", lasts=120)
    pod, run = run_until_deleted(engine, objects, target, script, FORCED)
    assert_deleted(engine, objects, pod, run)


@pytest.mark.parametrize("code", [1, 3])
def test_a_script_that_traps_sigterm_and_fails_was_deleted(
    engine: Engine, objects: Objects, target: ClusterUnderTest, code: int
) -> None:
    script = target.script("gone", lasts=120, on_term=code)
    pod, run = run_until_deleted(engine, objects, target, script, [])
    assert_deleted(engine, objects, pod, run)


@pytest.mark.parametrize("grace", ["the pod's own", "5 s"])
def test_a_script_that_traps_sigterm_and_exits_0_has_succeeded(
    engine: Engine, objects: Objects, target: ClusterUnderTest, grace: str
) -> None:
    script = target.script("gone", lasts=120, on_term=0)
    _, run = run_until_deleted(engine, objects, target, script, GRACES[grace])
    assert run.code == 0, run.stderr
    assert (run.job("gone")["state"], run.job("gone")["exitCode"]) == ("Succeeded", 0)
    objects.wait_until_clean()


@pytest.mark.since(1, 34)
def test_what_failed_before_it_was_deleted_has_failed(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    """No engine was there to see it: the pod itself tells, as long as something holds it."""
    engine.spec("job", script=target.script("job", lasts=3, ends=1))
    process = engine.start()
    pod = objects.wait_until_ungated("job")["metadata"]["name"]
    kill(process)
    held(objects, pod)

    def is_torn_down() -> bool:
        status = objects.pod("job")["status"]
        told = {condition["type"]: condition["status"] for condition in status["conditions"]}
        return bool(status["phase"] == "Failed" and told["PodReadyToStartContainers"] == "False")

    objects.api.wait(is_torn_down, "end of the pod")
    target.delete_pod(pod)
    run = engine.reconcile()
    job = run.job("job")
    assert (job["reason"], job["exitCode"], job["message"]) == ("ScriptFailed", 1, "exit code 1")
    released(objects, pod)


def test_what_died_of_its_deletion_has_not_failed_and_is_not_waited_for_while_a_finalizer_holds_it(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    """By then the kubelet has made its own last delete; something else still holds the pod."""
    engine.spec("gone", script=target.script("gone", lasts=120), **DEPENDENTS)
    process = engine.start()
    pod = objects.wait_until_running("gone")["metadata"]["name"]
    kill(process)
    held(objects, pod)
    target.delete_pod(pod)

    def is_rewritten() -> bool:
        found = objects.pod("gone")
        grace = found["metadata"].get("deletionGracePeriodSeconds")
        return bool(grace == 0 and found["status"]["phase"] == "Failed")

    objects.api.wait(is_rewritten, "the kubelet's last delete")
    job = engine.reconcile("--timeout", "60s", ends=7).job("gone")
    assert (job["state"], job["reason"]) == ("Failed", "PodDeleted"), job
    assert job["message"] == f"pod {pod} was deleted, and stays for its finalizer {HOLD}"
    released(objects, pod)
    objects.wait_until_clean()


@pytest.mark.parametrize("grace", [None, 1, 5])
def test_a_pod_that_the_api_evicts_was_evicted(
    engine: Engine, objects: Objects, target: ClusterUnderTest, grace: int | None
) -> None:
    engine.spec("job", script=target.script("job", lasts=120), **DEPENDENTS)
    process = engine.start()
    evict(objects, objects.wait_until_running("job")["metadata"]["name"], grace)
    run = finish(process, ends=7)
    job = run.job("job")
    assert (job["state"], job["reason"]) == ("Failed", "Evicted"), job
    assert job["message"] == "Eviction API: evicting"
    objects.wait_until_clean()


def test_an_evicted_job_is_retried_if_it_says_so(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=8), retry={"max": 1, "on": ["Evicted"]})
    process = engine.start()
    evict(objects, objects.wait_until_running("job")["metadata"]["name"])
    run = finish(process, ends=0)
    assert [a["outcome"] for a in run.job("job")["attempts"]] == ["Evicted", "Succeeded"]


def test_an_evicted_script_that_exits_0_on_sigterm_has_succeeded(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    engine.spec("job", script=target.script("job", lasts=120, on_term=0))
    process = engine.start()
    evict(objects, objects.wait_until_running("job")["metadata"]["name"])
    run = finish(process, ends=0)
    assert run.job("job")["reason"] == "Succeeded"


def held(objects: Objects, pod: str) -> None:
    hold = {"metadata": {"finalizers": [HOLD]}}
    objects.api.patch("pods", pod, hold, objects.namespace)


def released(objects: Objects, pod: str) -> None:
    free = {"metadata": {"finalizers": None}}
    objects.api.patch("pods", pod, free, objects.namespace)
