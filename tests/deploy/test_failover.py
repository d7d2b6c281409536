"""An engine's pod goes, or its node is cut off: the other one goes on, and no job runs twice."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.campaign.batches import bound_pods
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.deploy.release import Release, attempts, engine_values, spec_of
from tests.support.api import Api, Object
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(900)]

LEASES = "coordination.k8s.io/v1/leases"
POD_OF_TOKEN = "authentication.kubernetes.io/pod-name"
APART = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app.kubernetes.io/instance": "ci"}},
}
WRITES = {"create", "update", "patch", "delete"}


def leader_of(api: Api, release: Release) -> Object:
    """The pod that holds the Lease."""
    holder = api.get(LEASES, "engine-ci", release.namespace)["spec"]["holderIdentity"]
    pods = api.list("pods", release.namespace)
    (leader,) = [pod for pod in pods if pod["metadata"]["name"] in holder]
    return leader


def test_three_replicas_share_the_jobs_and_those_of_one_that_is_killed_go_to_the_others(
    release: Release, repository: str, engine: Engine, api: Api, jobs: str, cluster: Cluster
) -> None:
    values = engine_values(repository, jobs, first=spec_of("first", engine))
    values["engine"]["replicas"] = 3
    release.helm("install", values)
    api.wait(lambda: _has_three_members(api, release), "three engines that know each other", 180)

    begun = cluster.audit_position()
    files = {f"long-{n}.yaml": spec_of(f"long-{n}", engine, "sleep 60") for n in range(6)}
    api.patch("configmaps", "ci-engine-specs", {"data": files}, release.namespace)
    everyone = {"first", *(name.removesuffix(".yaml") for name in files)}

    def have_pods() -> bool:
        begun = {job for job, (_, number) in attempts(api, jobs).items() if number}
        return begun == everyone

    api.wait(have_pods, "a pod of every job", 300)
    told = engine.run("status", "-n", jobs, "-o", "json", ends=0).result["jobs"]
    owners = {job["pod"]: job["engine"] for job in told if job["name"] != "first"}
    replicas = [pod["metadata"]["name"] for pod in api.list("pods", release.namespace)]
    posts = ("create", f"/api/v1/namespaces/{jobs}/pods")
    for replica in replicas:
        asked = requests_of(replica, cluster, begun)
        own = [e for e in asked if (e["verb"], e["requestURI"].partition("?")[0]) == posts]
        made = {entry["objectRef"]["name"] for entry in own}
        assert made == {pod for pod, owner in owners.items() if replica in owner}
    killed = max(owners.values()).rsplit("_", 2)[0]
    api.delete("pods", killed, release.namespace, grace=0)

    expected = dict.fromkeys(everyone, ("Succeeded", 1))
    api.wait(lambda: attempts(api, jobs) == expected, "end of every job, run once", 300)


def _has_three_members(api: Api, release: Release) -> bool:
    """Whether each has renewed its Lease: from then on it acts, and the others know it."""
    leases = [lease["spec"] for lease in api.list(LEASES, release.namespace)]
    return len(leases) == 3 and all(one["renewTime"] > one["acquireTime"] for one in leases)


@contextmanager
def cut_off(node: Node, pod: Object) -> Iterator[None]:
    """The node's kubelet says nothing more, and the pod, which goes on, reaches nobody."""
    address = pod["status"]["podIP"]
    (route,) = json.loads(ip("-json", "route", "show", f"{address}/32"))
    link, kubelet = route["dev"], node.kubelet.identity
    assert kubelet is not None
    kubelet.signal(signal.SIGSTOP)
    ip("link", "set", link, "down")
    try:
        yield
    finally:
        ip("link", "set", link, "up")
        ip("route", "replace", f"{address}/32", "dev", link, "scope", "host")
        kubelet.signal(signal.SIGCONT)


def ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.soak
def test_when_an_engines_node_is_cut_off_the_other_takes_over_its_jobs_and_none_runs_twice(
    release: Release,
    repository: str,
    engine: Engine,
    api: Api,
    jobs: str,
    cluster: Cluster,
    second_node: Node,
) -> None:
    """It comes back and shares the jobs again; until then it writes nothing."""
    begun = cluster.audit_position()
    files = {f"job-{n}": spec_of(f"job-{n}", engine, "sleep 90") for n in range(4)}
    values = engine_values(repository, jobs, **files)
    values["engine"]["topologySpreadConstraints"] = [APART]
    release.helm("install", values)
    running = dict.fromkeys(files, ("Running", 1))
    api.wait(lambda: attempts(api, jobs) == running, "jobs that run", 180)

    replicas = api.list("pods", release.namespace)
    nodes = {node.name: node for node in (*cluster.nodes, second_node)}
    assert {pod["spec"]["nodeName"] for pod in replicas} == set(nodes), "one replica on each"
    cut = leader_of(api, release)
    name = cut["metadata"]["name"]
    with cut_off(nodes[cut["spec"]["nodeName"]], cut):
        since = cluster.audit_position()
        late = {"data": {f"late-{n}.yaml": spec_of(f"late-{n}", engine) for n in range(4)}}
        api.patch("configmaps", "ci-engine-specs", late, release.namespace)
        api.wait(lambda: len(attempts(api, jobs)) == 8, "jobs that the other engine starts", 180)
        assert writes_of(name, cluster, since) == []
    returned = cluster.audit_position()
    api.wait(lambda: requests_of(name, cluster, returned), "news of the engine", 60)

    late_jobs = (f"late-{n}" for n in range(4))
    expected = dict.fromkeys((*files, *late_jobs), ("Succeeded", 1))
    api.wait(lambda: attempts(api, jobs) == expected, "end of every job, run once", 180)
    bound = bound_pods(Objects(api, jobs), cluster, begun)
    assert sum(bound.values()) == len(bound) == len(expected)


def requests_of(pod: str, cluster: Cluster, since: int) -> list[dict[str, Any]]:
    """What this very pod asked for: its token says which one it is."""
    return [
        entry
        for entry in cluster.audit_entries("engine/", since)
        if entry["user"].get("extra", {}).get(POD_OF_TOKEN) == [pod]
    ]


def writes_of(pod: str, cluster: Cluster, since: int) -> list[dict[str, Any]]:
    return [entry for entry in requests_of(pod, cluster, since) if entry["verb"] in WRITES]
