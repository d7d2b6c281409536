"""Batches of jobs of seven kinds, and how it is judged that each of them ran exactly once."""

from collections import Counter
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.support.api import Object
from tests.support.engine import Engine
from tests.support.fault_campaign import LEAVE, LOST, is_expected
from tests.support.gates import HELD
from tests.support.objects import Objects
from tests.support.placement import leaves_lost_nodes, prefers_node

JOBS_IN_A_BATCH = 20
CHANGES = "changes"
"""Kind of a plain job whose spec changes once."""
ENDED = ("Succeeded", "Failed")
"""Phases of a pod that is over."""
GIVES_UP = {**leaves_lost_nodes(after=1), **prefers_node("node-2")}


def write_batch(engine: Engine, images: Images, batch: int) -> list[str]:
    """Names of the batch's jobs."""
    return [write_job(engine, images, batch, number) for number in range(JOBS_IN_A_BATCH)]


def write_job(engine: Engine, images: Images, batch: int, number: int, file: str = "") -> str:
    """Write one job's spec, to the folder unless `file` says otherwise; its name."""
    match number % 7:
        case 0:
            return engine.spec(f"plain-{batch}-{number}", file=file, script="sleep 0.3")
        case 1:
            secrets = {"TOKEN": {"value": "anything"}}
            name = f"owns-{batch}-{number}"
            return engine.spec(name, file=file, script="test $TOKEN", secrets=secrets)
        case 2:
            return engine.spec(f"fails-{batch}-{number}", file=file, script="exit 3")
        case 3:
            return engine.spec(f"held-{batch}-{number}", file=file, script="true", **HELD)
        case 4:
            retry = {"max": 9, "on": sorted(LOST)}
            name = f"moves-{batch}-{number}"
            return engine.spec(name, file=file, script="sleep 2", retry=retry, **GIVES_UP)
        case 5:
            return engine.spec(f"lost-{batch}-{number}", file=file, script="sleep 2", **GIVES_UP)
        case _:
            policies = ["Never", "IfNotPresent"]
            name, ref = f"falls-{batch}-{number}", images.build()
            return engine.spec(name, file=file, image=ref, script="true", pullPolicy=policies)


def kind_of(name: str) -> str:
    return name.partition("-")[0]


def assert_ended_as_specified(jobs: dict[str, dict[str, Any]]) -> None:
    found = {name: [one["outcome"] for one in job["attempts"]] for name, job in jobs.items()}
    wrong = {
        name: outcomes
        for name, outcomes in found.items()
        if not is_expected("plain" if kind_of(name) == CHANGES else kind_of(name), outcomes)
        and not _never_started(jobs[name]["attempts"][-1])
    }
    assert not wrong, wrong


def _never_started(attempt: dict[str, Any]) -> bool:
    """Whether the kubelet was killed in the middle of its start: any job may lose its node so."""
    return attempt["outcome"] == "NodeLost" and "context canceled" in attempt["message"]


def outcomes_of(jobs: dict[str, dict[str, Any]]) -> "Counter[str]":
    return Counter(one["outcome"] for job in jobs.values() for one in job["attempts"])


def bound_pods(objects: Objects, cluster: Cluster, before: int) -> Counter[str]:
    """How many pods of each name were given to the node: each of them was another pod.

    Creates are no measure: the log calls one failed whose client died before the answer.
    """
    bound = {
        (entry["objectRef"]["name"], entry["objectRef"]["uid"])
        for entry in cluster.audit_entries("kube-scheduler/", before)
        if entry["objectRef"].get("subresource") == "binding"
        and entry["objectRef"]["namespace"] == objects.namespace
        and entry["responseStatus"]["code"] == 201
    }
    return Counter(name for name, _ in bound)


def assert_nothing_left(objects: Objects, jobs: dict[str, dict[str, Any]]) -> None:
    """Of each job that never changed its last pod, or none if that has left a node; what they own.

    The pod of an earlier attempt that has come to an end stays for its logs: the kubelet ends one
    that it was about to start when it was killed.
    Assumptions: what is to go has gone.
    """
    last = {job["attempts"][-1]["pod"]: name for name, job in jobs.items()}
    lost = {
        attempt["pod"]
        for job in jobs.values()
        for attempt in job["attempts"][:-1]
        if attempt["outcome"] in LOST
    }
    pods = {pod["metadata"]["name"]: pod for pod in objects.pods()}
    kept = lost & {name for name, pod in pods.items() if pod["status"]["phase"] in ENDED}
    left = {name for name, pod in pods.items() if kind_of(_job_of(pod)) != CHANGES}
    assert not left - kept - set(last), left - kept - set(last)
    assert {kind_of(last[pod]) for pod in last if pod not in pods} <= set(LEAVE)
    assert_owned(objects)


def _job_of(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["jobs.engine/job"])


def assert_owned(objects: Objects) -> None:
    """Every Secret and ConfigMap of the engine has one owner, and that is a pod."""
    pods = {pod["metadata"]["uid"] for pod in objects.pods()}
    labels = "app.kubernetes.io/managed-by=engine,jobs.engine/component!=record"
    for kind in ("secrets", "configmaps"):
        for item in objects.api.list(kind, objects.namespace, labels=labels):
            (owner,) = item["metadata"]["ownerReferences"]
            assert owner["uid"] in pods, f"left behind: {kind}/{item['metadata']['name']}"
