"""What campaigns of faults share: jobs of every kind, random faults, and the verdict.

Judged by what the sandbox holds and by what its node did, never by what the engine says of itself:
every job ends as its spec says, its main container started once, and nothing is left behind.
"""

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from tests.support.clusters import IMAGE, NAMESPACE

DOWN = "down.example/tool:1"
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


def prepare(sandbox: Sandbox) -> None:
    """Make the sandbox one in which the jobs come to their end."""
    sandbox.namespace(NAMESPACE)
    sandbox.images.down("down.example")
    sandbox.images.cache(DOWN)
    for container in ("main", "setup"):
        sandbox.node.will(QUICK, container=container)
    sandbox.node.will(Run(duration=0.02, exit_code=3), pod="fails-*")


def document(name: str, **more: Any) -> str:
    """The text of a job's spec, changed by `more`."""
    whole = {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": name},
        "spec": {"image": IMAGE, **SPECS[name], **more},
    }
    return json.dumps(whole)


def random_faults(chance: random.Random) -> Iterator[Fault]:
    """Some bad luck with any request."""
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


def faults_of_one_that_stays(chance: random.Random) -> Iterator[Fault]:
    """Bad luck with what only an engine that stays asks for: its Lease, records and watches."""
    for _ in range(chance.randint(1, 4)):
        times, skip = chance.randint(1, 3), chance.randint(0, 4)
        match chance.randrange(8):
            case 0:
                yield Fault(LostReply(), "*", "leases", times=times, skip=skip)
            case 1:
                yield Fault(Conflict(), "update", "leases", times=1, skip=skip)
            case 2:
                times = chance.choice((1, 3, 8))
                yield Fault(ServerError(503), "*", "leases", times=times, skip=4 + skip)
            case 3:
                yield Fault(ServerError(500), "list", "configmaps", times=times)
            case 4:
                yield Fault(LostReply(), "list", "*", times=times)
            case 5:
                after = chance.randint(0, 12)
                yield Fault(DropWatch(after), "watch", "*", times=2 * times)
            case 6:
                yield Fault(ExpireWatch(), "watch", "configmaps", times=times)
            case _:
                yield Fault(TooManyRequests(0), "watch", "*", times=times)


@contextmanager
def narrow_quota(sandbox: Sandbox, chance: random.Random) -> Iterator[None]:
    """With every other seed a quota on ConfigMaps comes and goes, with room for up to three more.

    In the end, and where the block ends, there is room for all.
    """
    phases = [(chance.randint(0, 3), chance.uniform(0.1, 0.8)) for _ in range(chance.randint(1, 3))]
    over = threading.Event()

    def play() -> None:
        for room, seconds in phases:
            there = len(sandbox.objects("configmaps", NAMESPACE))
            sandbox.quota(NAMESPACE, "narrow", configmaps=str(there + room))
            over.wait(seconds)
            sandbox.quota(NAMESPACE, "narrow", configmaps="1000")
            over.wait(seconds)

    player = threading.Thread(target=play)
    if chance.random() < 0.5:
        player.start()
    try:
        yield
    finally:
        over.set()
        if player.ident is not None:
            player.join()


def assert_ended(sandbox: Sandbox, expected: Mapping[str, list[str]] = EXPECTED) -> None:
    """Every job has the expected outcomes, its last pod and nothing else."""
    found = dict(records(sandbox))
    outcomes = {
        name: [attempt["outcome"] for attempt in record["attempts"]]
        for name, record in found.items()
    }
    assert outcomes == expected
    last = {record["attempts"][-1]["uid"] for record in found.values()}
    assert_only(sandbox, last)
    assert mains_started(sandbox) == Counter(last)


def assert_only(sandbox: Sandbox, uids: set[str]) -> None:
    """These pods are there, finished, and nothing but what belongs to them and the records."""
    sandbox.clock.advance(1)
    pods = {pod["metadata"]["uid"]: pod for pod in sandbox.objects("pods", NAMESPACE)}
    assert set(pods) == uids, "pods of other attempts are left, or the last ones are not"
    assert {pod["status"]["phase"] for pod in pods.values()} <= {"Succeeded", "Failed"}
    for kind in ("secrets", "configmaps"):
        for item in sandbox.objects(kind, NAMESPACE):
            if item["metadata"]["name"] == ROOT_CERTIFICATE:
                continue
            owners = [owner["uid"] for owner in item["metadata"].get("ownerReferences", ())]
            is_record = item["metadata"]["name"].endswith(".record")
            assert is_record or set(owners) <= uids != set(), f"left behind: {item['metadata']}"
            assert len(owners) == (0 if is_record else 1)


def records(sandbox: Sandbox) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in sandbox.objects("configmaps", NAMESPACE):
        name, _, kind = item["metadata"]["name"].rpartition(".")
        if kind == "record":
            yield name, json.loads(item["data"]["record.json"])


def mains_started(sandbox: Sandbox) -> Counter[str]:
    """How often the node started the main container of each pod, also of those that are gone."""
    return Counter(
        event["involvedObject"]["uid"]
        for event in sandbox.objects("events", NAMESPACE)
        if event["reason"] == "Started"
        and event["involvedObject"].get("fieldPath") == "spec.containers{main}"
        for _ in range(event.get("count", 1))
    )
