"""What campaigns of faults share: jobs of every kind, random faults, and the verdict.

Judged by what the sandbox holds and by what its node did, never by what the engine says of itself:
every job ends as its spec says, its main container started once, and nothing is left behind.
"""

import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
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
from engine.sandbox.faults import Effect
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from engine.sandbox.node.node import Node
from tests.support.clusters import IMAGE, NAMESPACE
from tests.support.gates import HELD
from tests.support.job_specs import STATUS
from tests.support.placement import leaves_lost_nodes, prefers_node

DOWN = "down.example/tool:1"
SECOND = "sandbox-node-2"
QUICK = Run(duration=0.02)
LOST = {"NodeLost", "PodDeleted"}
"""How an attempt ends whose node is lost: the second, if nobody heard of it before it was back."""
GIVES_UP = {**leaves_lost_nodes(after=0), **prefers_node(SECOND)}
"""A spec whose pod goes to the node that is lost, and leaves it then at once."""
LEAVE = ("moves", "lost")
EXPECTED = {
    "plain": ["Succeeded"],
    "owns": ["Succeeded"],
    "fails": ["ScriptFailed"],
    "falls": ["ImagePullFailed", "Succeeded"],
    "serves": ["Succeeded"],
    "prepares": ["Succeeded"],
    "held": ["Succeeded"],
    "moves": ["Succeeded"],
    "lost": ["Succeeded"],
}
"""Outcomes; where a node is lost, those of LEAVE may have others, as `is_expected` says."""
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
    "held": {"script": "true", "files": {"a": "b"}, **HELD},
    "moves": {"script": "true", "retry": {"max": 9, "on": sorted(LOST)}, **GIVES_UP},
    "lost": {"script": "true", "files": {"a": "b"}, **GIVES_UP},
}
WRITES = ("create", "update", "patch", "delete")
RESOURCES = ("pods", "secrets", "configmaps", "*")


def prepare(sandbox: Sandbox) -> Node:
    """Make the sandbox one in which the jobs come to their end; its second node."""
    sandbox.namespace(NAMESPACE)
    second = sandbox.add_node(SECOND)
    sandbox.images.down("down.example")
    for node in (sandbox.node, second):
        node.images.cache(DOWN)
    for container in ("main", "setup"):
        sandbox.node.will(QUICK, container=container)
    sandbox.node.will(Run(duration=0.02, exit_code=3), pod="fails-*")
    for job in LEAVE:
        sandbox.node.will(Run(duration=1.0), pod=f"{job}-*")
    return second


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


def is_expected(name: str, outcomes: list[str]) -> bool:
    """Whether a job may end so; one that is tried again has lost a node each time before."""
    if name == "moves":
        return outcomes[-1:] == EXPECTED[name] and set(outcomes[:-1]) <= LOST
    if name == "lost" and len(outcomes) == 1:
        return set(outcomes) <= {*EXPECTED[name], *LOST}
    return outcomes == EXPECTED[name]


def assert_ended(sandbox: Sandbox, names: Collection[str] = tuple(SPECS)) -> None:
    """Every job has the expected outcomes, its last pod and nothing else.

    The main container of an attempt whose node was lost may have been started, but once at most.
    """
    found = dict(records(sandbox))
    outcomes = {
        name: [attempt["outcome"] for attempt in record["attempts"]]
        for name, record in found.items()
    }
    assert set(outcomes) == set(names)
    assert all(is_expected(name, outcomes[name]) for name in names), outcomes
    attempts = [(name, one) for name, record in found.items() for one in record["attempts"]]
    lost = {attempt["uid"] for _, attempt in attempts if attempt["outcome"] in LOST}
    last = {record["attempts"][-1]["uid"] for record in found.values()} - lost
    assert_only(sandbox, last, {one["uid"] for name, one in attempts if name in LEAVE})
    started = mains_started(sandbox)
    assert started - Counter(lost) == Counter(last)
    assert started <= Counter(last | lost)


def assert_only(sandbox: Sandbox, uids: set[str], gone: set[str] | None = None) -> None:
    """These pods are there, finished, and nothing but what belongs to them and the records.

    Those of `gone` need not be there: they ended while they were being deleted.
    """
    sandbox.clock.advance(1)
    pods = {pod["metadata"]["uid"]: pod for pod in sandbox.objects("pods", NAMESPACE)}
    left = sorted(pod["metadata"]["name"] for uid, pod in pods.items() if uid not in uids)
    assert not left, f"pods of other attempts are left: {left}"
    assert uids - set(pods) <= (gone or set()), "pods of the last attempts are missing"
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
    for item in sandbox.objects("jobspecs", NAMESPACE):
        if "record" in item["status"]:
            yield item["metadata"]["name"], item["status"]["record"]


def of_objects(faults: Iterable[Fault], chance: random.Random) -> Iterator[Fault]:
    """The same bad luck where the specs are objects: what befell records befalls their status.

    There is some more for the status alone, since its writes are few.
    """
    for one in faults:
        yield replace(one, resource="jobspecs*") if one.resource == "configmaps" else one
    effects: tuple[Effect, ...] = (
        *(LostReply(), LostReply(500), LostReply(504), ServerError(500), DropConnection()),
        *(Conflict(), TooManyRequests(0), TooManyRequests(1), Latency(0.2)),
    )
    for effect in chance.sample(effects, chance.randint(1, 3)):
        times, skip = chance.randint(1, 4), chance.randint(0, 16)
        yield Fault(effect, "update", STATUS, times=times, skip=skip)


def mains_started(sandbox: Sandbox) -> Counter[str]:
    """How often the node started the main container of each pod, also of those that are gone."""
    return Counter(
        event["involvedObject"]["uid"]
        for event in sandbox.objects("events", NAMESPACE)
        if event["reason"] == "Started"
        and event["involvedObject"].get("fieldPath") == "spec.containers{main}"
        for _ in range(event.get("count", 1))
    )
