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


def test_when_the_leaders_pod_is_killed_the_other_goes_on_with_its_jobs(
    release: Release, repository: str, engine: Engine, api: Api, jobs: str
) -> None:
    values = engine_values(repository, jobs, long=spec_of("long", engine, "sleep 20"))
    release.helm("install", values)
    api.wait(lambda: attempts(api, jobs).get("long", ("",))[0] == "Running", "running job", 180)
    leader = leader_of(api, release)["metadata"]["name"]
    api.delete("pods", leader, release.namespace, grace=0)

    expected = {"long": ("Succeeded", 1)}
    api.wait(lambda: attempts(api, jobs) == expected, "end of the job, run once", 180)


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
