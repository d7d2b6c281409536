"""One of many jobs pulls their image first; the others wait without a pod, and end as it does."""

import time
from typing import Any

import pytest

from engine.sandbox import Run, Sandbox
from tests.cluster.registry import Registry
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

pytestmark = pytest.mark.timeout(300)

MANY = 40
BAD = "down.example/tool:missing"


def write(engine: Engine, image: str, count: int = MANY, **more: Any) -> list[str]:
    names = [f"job-{number:03}" for number in range(count)]
    for name in names:
        engine.spec(name, image=image, script="true", **more)
    return names


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_many_jobs_of_a_bad_tag_make_a_few_pulls_and_end_with_the_registrys_words(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.missing(BAD)
    names = write(engine, BAD)
    run = engine.reconcile(ends=4, timeout=120)
    assert len(sandbox.images.pulls) <= 3
    assert {run.job(name)["reason"] for name in names} == {"ImagePullFailed"}
    (words,) = {run.job(name)["message"] for name in names}
    assert "down.example/tool:missing: not found" in words
    made = {attempt["uid"] for name in names for attempt in run.job(name)["attempts"]}
    assert len(made - {""}) <= 3, "what waited never had a pod"


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_a_policy_that_is_left_is_tried_by_one_job_for_all(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.cache(BAD)
    sandbox.images.down("down.example")
    names = write(engine, BAD, pullPolicy=["Always", "IfNotPresent"])
    run = engine.reconcile(ends=0, timeout=120)
    assert len(sandbox.images.pulls) <= 3
    for name in names:
        outcomes = [attempt["outcome"] for attempt in run.job(name)["attempts"]]
        assert outcomes == ["ImagePullFailed", "Succeeded"]


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_a_job_that_waits_for_long_says_so_and_begins_as_soon_as_the_image_is_proved(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.pull_time = 15.0
    names = write(engine, "slow.example/tool:1", 5)
    process = engine.start()

    def waiting_jobs() -> list[str]:
        return [k for k, one in engine.status().items() if one["reason"] == "WaitingForImage"]

    objects.api.wait(lambda: len(waiting_jobs()) == len(names) - 1, "the records", timeout=60)
    found = engine.status()
    waiting = waiting_jobs()
    assert len(objects.pods()) == 1
    (scout,) = set(names) - {*waiting}
    words = f"image slow.example/tool:1 is pulled by job {engine.namespace}/{scout} first"
    assert {found[name]["message"] for name in waiting} == {words}
    shown = engine.run("status", "-n", engine.namespace).stdout
    assert "  WaitingForImage  " in shown
    run = finish(process, ends=0)
    assert {run.job(name)["reason"] for name in names} == {"Succeeded"}


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_another_login_is_tried_by_itself(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.images.registry("private.example", None, {"ci": "right-password"})
    image = "private.example/tool:1"
    for name, password in (("a", "right-password"), ("b", "right-password"), ("c", "wrong-one")):
        login = {"registry": "private.example", "username": "ci", "password": {"value": password}}
        engine.spec(name, image=image, script="true", registryCredentials=[login])
    run = engine.reconcile(ends=4)
    reasons = {name: run.job(name)["reason"] for name in "abc"}
    assert reasons == {"a": "Succeeded", "b": "Succeeded", "c": "ImagePullFailed"}


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_no_job_waits_for_one_that_no_node_takes(engine: Engine, objects: Objects) -> None:
    huge = {"requests": {"cpu": "1000"}}
    write(engine, "any.example/tool:1", 3, resources=huge)
    with EngineProcess(engine):
        objects.api.wait(lambda: len(objects.pods()) == 3, "all pods", timeout=60)


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_the_operator_can_have_each_job_find_out_by_itself(
    engine: Engine, sandbox: Sandbox
) -> None:
    config = engine.folder.parent / "engine.yaml"
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config.write_text(f"{head}pull: {{scout: false}}\n", encoding="utf-8")
    sandbox.images.missing(BAD)
    names = write(engine, BAD, 5)
    run = engine.reconcile("--config", str(config), ends=4)
    assert len(sandbox.images.pulls) >= len(names)
    assert all(run.job(name)["attempts"][0]["uid"] for name in names)


@pytest.mark.real
def test_many_jobs_of_an_image_that_is_there_all_run(
    target: ClusterUnderTest, engine: Engine
) -> None:
    names = write(engine, target.image, 12)
    run = engine.reconcile(ends=0, timeout=240)
    assert {run.job(name)["reason"] for name in names} == {"Succeeded"}


@pytest.mark.only("real")
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_thousand_jobs_of_a_bad_tag_cost_the_registry_no_more_than_one(
    target: ClusterUnderTest, engine: Engine, registry: Registry
) -> None:
    """Prints how long one such job takes, and how long a thousand of them."""
    took, asked = list[float](), list[int]()
    for count in (1, 1000):
        tag = f"missing-{engine.namespace}-{count}"
        names = write(engine, f"{target.image.rpartition(':')[0]}:{tag}", count)
        begun = time.monotonic()
        run = engine.reconcile(ends=4, timeout=500)
        took.append(time.monotonic() - begun)
        lines = registry.component.log.read_text(errors="replace").splitlines()
        asked.append(sum(f"manifests/{tag} " in line for line in lines))
        for name in names:
            (engine.folder / f"{name}.yaml").unlink()
    print(f"{took[0]:.1f} s and {asked[0]} requests; {took[1]:.1f} s and {asked[1]}")  # noqa: T201
    assert {run.job(name)["reason"] for name in names} == {"ImagePullFailed"}
    (words,) = {run.job(name)["message"] for name in names}
    assert f":{tag}: not found" in words
    assert 0 < asked[1] <= 3


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_a_command_that_only_starts_jobs_sees_to_it_that_all_have_started(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.node.pull_time = 2.0
    sandbox.node.will(Run(duration=60.0), pod="job-*")
    names = write(engine, "slow.example/tool:1", 20)
    run = engine.reconcile("--wait", "applied", ends=0, timeout=100)
    assert all(run.job(name)["attempts"][0]["uid"] for name in names)
    one = write(engine, "slow.example/other:1", 1)
    run = engine.reconcile("--wait", "applied", ends=0, timeout=100)
    assert run.job(one[0])["state"] == "Starting", "nobody waits for what it pulls"
