"""Two hundred bad days: by each seed a network and an API server that fail in their own way.

Judged by what the sandbox holds and by what its node did, never by what the engine says of itself:
every job ends as its spec says, its main container started once, and nothing is left behind.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine.cli.loading import load_paths
from engine.cluster.connect import connect
from engine.controller.once import OnceRun
from engine.controller.once_result import OnceOptions, OnceResult
from engine.render.templates import Templates
from engine.sandbox import (
    Conflict,
    DropConnection,
    DropWatch,
    ExpireWatch,
    Fault,
    Latency,
    LostReply,
    Run,
    Sandbox,
    ServerError,
    TooManyRequests,
)
from engine.spec.model import Config
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor
from tests.e2e_sandbox.conftest import IMAGE, NAMESPACE

SEEDS = int(os.environ.get("ENGINE_CAMPAIGN_SEEDS", "200"))
FIRST = int(os.environ.get("ENGINE_CAMPAIGN_SEED", "0"))
WORKERS = 12
DOWN = "down.example/tool:1"
TIMEOUT = 60.0
QUICK = Run(duration=0.02)
EXPECTED = {
    "plain": ["Succeeded"],
    "owns": ["Succeeded"],
    "fails": ["ScriptFailed"],
    "falls": ["ImagePullFailed", "Succeeded"],
    "serves": ["Succeeded"],
    "prepares": ["Succeeded"],
}
SPECS: dict[str, dict[str, Any]] = {
    "plain": {"script": "true"},
    "owns": {
        "script": "test $TOKEN",
        "secrets": {"TOKEN": {"value": "anything"}},
        "files": {"a/b.txt": "content"},
    },
    "fails": {"script": "exit 3"},
    "falls": {"script": "true", "image": DOWN, "pullPolicy": ["Always", "IfNotPresent"]},
    "serves": {"script": "true", "services": [{"name": "redis", "image": IMAGE}]},
    "prepares": {"script": "true", "initContainers": [{"name": "setup", "image": IMAGE}]},
}
WRITES = ("create", "update", "patch", "delete")
RESOURCES = ("pods", "secrets", "configmaps", "*")


@pytest.mark.timeout(300 + 3 * SEEDS)
def test_every_job_ends_as_its_spec_says_whatever_the_network_does(tmp_path: Path) -> None:
    specs = _write_specs(tmp_path)
    with ThreadPoolExecutor(WORKERS) as pool:
        found = pool.map(lambda seed: _play(seed, specs, tmp_path), range(FIRST, FIRST + SEEDS))
    failures = [failure for failure in found if failure]
    assert not failures, "\n".join(failures)


def _play(seed: int, specs: list[str], folder: Path) -> str:
    """What went wrong with this seed, and how to see it again; "" if nothing did."""
    faults = list(_faults(random.Random(seed)))
    with Sandbox(seed=seed) as sandbox:
        sandbox.namespace(NAMESPACE)
        sandbox.images.down("down.example")
        sandbox.images.cache(DOWN)
        for container in ("main", "setup"):
            sandbox.node.will(QUICK, container=container)
        sandbox.node.will(Run(duration=0.02, exit_code=3), pod="fails-*")
        kubeconfig = sandbox.write_kubeconfig(folder / f"kubeconfig-{seed}")
        for fault in faults:
            sandbox.faults.add(fault)
        try:
            _judge_end(sandbox, _reconcile(kubeconfig, specs))
            sandbox.faults.clear()
            sandbox.requests.clear()
            again = _reconcile(kubeconfig, specs)
            assert not any(job.changed for job in again.jobs)
            assert sandbox.requests.writes == []
        except Exception as error:  # noqa: BLE001 - every seed is to be told, with its faults
            seen = [f"{sandbox.faults.hits(fault)}x {fault}" for fault in faults]
            lines = "\n    ".join([f"{type(error).__name__}: {error}", *seen])
            return f"ENGINE_CAMPAIGN_SEED={seed} ENGINE_CAMPAIGN_SEEDS=1\n    {lines}"
    return ""


def _reconcile(kubeconfig: Path, specs: list[str]) -> OnceResult:
    jobs = load_paths(specs, Config(), NAMESPACE).jobs
    options = OnceOptions("campaign", timeout=TIMEOUT)
    client = connect(str(kubeconfig)).client
    run = OnceRun(client, jobs, Config(), options, Templates(), _say_nothing)
    return run.run({}, Redactor())


def _say_nothing(event: Event) -> None:
    del event


def _judge_end(sandbox: Sandbox, result: OnceResult) -> None:
    assert not result.timed_out, "not every job came to its end"
    assert [str(job.error) for job in result.jobs if job.error] == []
    records = dict(_records(sandbox))
    outcomes = {
        name: [attempt["outcome"] for attempt in record["attempts"]]
        for name, record in records.items()
    }
    assert outcomes == EXPECTED
    pods = {pod["metadata"]["uid"]: pod for pod in sandbox.objects("pods", NAMESPACE)}
    last = {record["attempts"][-1]["uid"] for record in records.values()}
    assert set(pods) == last, "pods of other attempts are left, or the last ones are not"
    assert {pod["status"]["phase"] for pod in pods.values()} <= {"Succeeded", "Failed"}
    assert _mains_started(sandbox) == Counter(last)
    sandbox.clock.settle()
    for kind in ("secrets", "configmaps"):
        for item in sandbox.objects(kind, NAMESPACE):
            owners = [owner["uid"] for owner in item["metadata"].get("ownerReferences", ())]
            is_record = item["metadata"]["name"].endswith(".record")
            assert is_record or set(owners) <= last != set(), f"left behind: {item['metadata']}"
            assert len(owners) == (0 if is_record else 1)


def _records(sandbox: Sandbox) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in sandbox.objects("configmaps", NAMESPACE):
        name, _, kind = item["metadata"]["name"].rpartition(".")
        if kind == "record":
            yield name, json.loads(item["data"]["record.json"])


def _mains_started(sandbox: Sandbox) -> Counter[str]:
    """How often the node started the main container of each pod, also of those that are gone."""
    return Counter(
        event["involvedObject"]["uid"]
        for event in sandbox.objects("events", NAMESPACE)
        if event["reason"] == "Started"
        and event["involvedObject"].get("fieldPath") == "spec.containers{main}"
        for _ in range(event.get("count", 1))
    )


def _faults(chance: random.Random) -> Iterator[Fault]:
    for _ in range(chance.randint(2, 7)):
        verb, resource = chance.choice(WRITES), chance.choice(RESOURCES)
        times, skip = chance.randint(1, 4), chance.randint(0, 8)
        match chance.randrange(11):
            case 0 | 1 | 2:
                yield Fault(LostReply(), verb, resource, times=times, skip=skip)
            case 3:
                seconds = chance.choice((0, 0, 1))
                yield Fault(TooManyRequests(seconds), "*", resource, times=times, skip=skip)
            case 4:
                storm = chance.randint(3, 8)
                code = chance.choice((500, 503))
                yield Fault(ServerError(code), "*", times=storm, skip=skip, probability=0.5)
            case 5:
                yield Fault(DropConnection(), "*", resource, times=times, skip=skip)
            case 6:
                changing = chance.choice(("update", "patch", "delete"))
                yield Fault(Conflict(), changing, resource, times=times, skip=skip)
            case 7:
                yield Fault(Latency(chance.uniform(0.01, 0.2)), verb, resource, times=3 * times)
            case 8:
                after = chance.randint(0, 12)
                yield Fault(DropWatch(after), "watch", "pods", times=times)
            case 9:
                yield Fault(ExpireWatch(), "watch", "pods", times=times)
            case _:
                yield Fault(Latency(chance.uniform(0.1, 0.5)), "list", times=times)


def _write_specs(folder: Path) -> list[str]:
    paths = []
    for name, spec in SPECS.items():
        document = {
            "apiVersion": "jobs.engine/v1alpha1",
            "kind": "JobSpec",
            "metadata": {"name": name},
            "spec": {"image": IMAGE, **spec},
        }
        path = folder / f"{name}.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")
        paths.append(str(path))
    return paths
