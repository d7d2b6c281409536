"""One of many jobs pulls their image first; the others wait without a pod, and end as it does."""

import time
from datetime import datetime
from http import HTTPStatus
from itertools import pairwise
from typing import Any

import pytest

from engine.sandbox import Run, Sandbox
from engine.status.containers import started_at
from tests.cluster.images import Images
from tests.cluster.registry import Registry
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects
from tests.support.registry_proxy import RegistryProxy

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


@pytest.mark.only("real")
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_once_one_pod_has_pulled_a_good_image_the_others_go_within_a_tenth_of_the_pull(
    engine: Engine, objects: Objects, images: Images, registry: Registry
) -> None:
    with RegistryProxy(registry.host) as proxy:
        proxy.blob_time = 40.0
        names = write(engine, images.build().replace(registry.host, proxy.host))
        run = engine.reconcile(ends=0, timeout=500)
    assert {run.job(name)["reason"] for name in names} == {"Succeeded"}
    pods = objects.pods()
    created = sorted(
        datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).timestamp() for pod in pods
    )
    pulled = max(at for at, path, _ in proxy.log if "/blobs/" in path)
    proved = min(one.timestamp() for one in map(started_at, pods) if one is not None)
    print(  # noqa: T201
        f"pulled at 0 s; the pod started at {proved - pulled:.1f} s by the second, the others were"
        f" made from {created[1] - pulled:.1f} to {created[-1] - pulled:.1f} s"
    )
    assert created[1] >= proved, "none before"
    assert created[1] - proved <= 0.1 * proxy.blob_time
    assert max(after - before for before, after in pairwise(created[1:])) <= 2, "at one go"


@pytest.mark.only("real")
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_busy_registry_is_asked_once_per_back_off_for_all_jobs(
    engine: Engine, images: Images, registry: Registry
) -> None:
    """The runtime itself repeats a request at once where the answer is 429: that is one pull."""
    with RegistryProxy(registry.host) as proxy:
        names = write(engine, images.build().replace(registry.host, proxy.host), 50)
        proxy.busy_until = time.time() + 30
        run = engine.reconcile(ends=0, timeout=500)
    assert {run.job(name)["reason"] for name in names} == {"Succeeded"}
    refused = [at for at, _, status in proxy.log if status == HTTPStatus.TOO_MANY_REQUESTS]
    pulls = [at for before, at in pairwise([0.0, *refused]) if at - before > 1]
    print(f"{len(refused)} requests in {len(pulls)} pulls, at {pulls}")  # noqa: T201
    assert all(after - before > 9 for before, after in pairwise(pulls)), "the kubelet's back-off"
    assert len(pulls) <= 3


@pytest.mark.only("sandbox")
@pytest.mark.clock(1.0)
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_thousand_jobs_of_a_good_image_start_as_soon_as_without_a_scout(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """Prints when the last of them starts with a scout, and without."""
    config, last = engine.folder.parent / "engine.yaml", list[float]()
    sandbox.node.pull_time = 60.0
    for scout in ("false", "true"):
        head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
        config.write_text(f"{head}pull: {{scout: {scout}}}\n", encoding="utf-8")
        write(engine, f"slow.example/{scout}:1", 1000)
        begun = time.time()
        run = engine.reconcile("--config", str(config), ends=0, timeout=400)
        ours = {one["attempts"][-1]["uid"] for one in run.result["jobs"]}
        pods = [pod for pod in objects.pods() if pod["metadata"]["uid"] in ours]
        starts = [one.timestamp() - begun for one in map(started_at, pods) if one is not None]
        assert len(starts) == len(ours) == 1000
        last.append(max(starts))
    print(f"without {last[0]:.1f} s, with {last[1]:.1f} s")  # noqa: T201
    assert last[1] <= 1.1 * last[0]


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
