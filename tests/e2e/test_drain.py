"""A node that is drained, or wanted by a pod of a higher priority, while a job runs on it."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.support.api import Object
from tests.support.engine import Engine, finish
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects
from tests.support.second_node import SecondNode

pytestmark = [pytest.mark.only("real"), pytest.mark.timeout(600)]

PRIORITIES = "scheduling.k8s.io/v1/priorityclasses"
WAITS = "trap 'exit 143' TERM\nsleep 120 & wait\n"


def drain(cluster: Cluster, node: Node) -> str:
    """As an administrator does it, with each pod's own grace period; what kubectl says."""
    kubectl = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig)]
    options = ["--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=180s"]
    asked = [*kubectl, "drain", node.name, *options]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stderr


def test_a_job_on_a_drained_node_was_evicted_and_leaves_nothing(
    engine: Engine, objects: Objects, cluster: Cluster, second_node: Node
) -> None:
    there = {"kubernetes.io/hostname": second_node.name}
    engine.spec("moved", script=WAITS, nodeSelector=there, secrets={"A": {"value": "anything"}})
    process = engine.start()
    objects.wait_until_running("moved")
    drain(cluster, second_node)

    job = finish(process, ends=7).job("moved")
    assert (job["state"], job["reason"]) == ("Failed", "Evicted"), job
    assert objects.pods() == []
    objects.wait_until_clean()


def test_a_job_that_asks_for_it_runs_again_on_another_node(
    engine: Engine, objects: Objects, cluster: Cluster, second_node: Node, other_node: SecondNode
) -> None:
    engine.spec("moved", **other_node.spec("moved"), retry={"max": 1, "on": ["Evicted"]})
    process = engine.start()
    running = objects.wait_until_running("moved")
    assert running["spec"]["nodeName"] == second_node.name
    drain(cluster, second_node)

    run = finish(process, ends=0)
    assert [a["outcome"] for a in run.job("moved")["attempts"]] == ["Evicted", "Succeeded"]
    assert objects.pod("moved")["spec"]["nodeName"] == "node-1"


def test_so_it_does_with_the_engine_that_stays(
    engine: Engine, objects: Objects, cluster: Cluster, second_node: Node, other_node: SecondNode
) -> None:
    engine.spec("moved", **other_node.spec("moved"), retry={"max": 1, "on": ["Evicted"]})
    engine.spec("ends", **other_node.spec("ends"))
    with EngineProcess(engine) as staying:
        for job in ("moved", "ends"):
            objects.wait_until_running(job)
        drain(cluster, second_node)
        staying.wait_for_line("/moved: Succeeded", within=120)
        staying.wait_for_line("/ends: Failed Evicted", within=120)
    found = engine.status()
    assert [a["outcome"] for a in found["moved"]["attempts"]] == ["Evicted", "Succeeded"]
    assert [a["outcome"] for a in found["ends"]["attempts"]] == ["Evicted"]


@pytest.mark.parametrize(
    ("kept", "gone"), [(3, 2), pytest.param(25, 25, marks=pytest.mark.soak)], ids=["few", "fifty"]
)
def test_a_protected_job_holds_the_drain_until_it_ends_and_any_other_is_evicted(
    engine: Engine,
    objects: Objects,
    cluster: Cluster,
    second_node: Node,
    other_node: SecondNode,
    kept: int,
    gone: int,
) -> None:
    """Those that are evicted are tried again, elsewhere; finished pods don't hold the drain."""
    said = engine.run("doctor", "-n", engine.namespace).stdout
    remedy = said.partition("kubectl create poddisruptionbudget")[2].partition(")")[0].split()
    kubectl = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig)]
    made = [*kubectl, "create", "poddisruptionbudget", *remedy]
    subprocess.run(made, check=True, capture_output=True)
    assert "engine-protect refuses" in engine.run("doctor", "-n", engine.namespace).stdout
    there = {"kubernetes.io/hostname": second_node.name}
    engine.spec("over", script="true", nodeSelector=there)
    engine.reconcile(ends=0)
    lasts = 15 + (kept + gone)  # the last of them starts before the first has ended
    ends = f"trap 'exit 143' TERM\nsleep {lasts} & wait\n"
    protected = [f"kept-{n}" for n in range(kept)]
    evicted = [f"gone-{n}" for n in range(gone)]
    for job in protected:
        engine.spec(job, script=ends, disruption="protect", timeout="3m", nodeSelector=there)
    for job in evicted:
        engine.spec(job, **other_node.spec(job), retry={"max": 1})
    jobs = (*protected, *evicted)
    process = engine.start()
    pods = {job: objects.wait_until_running(job) for job in jobs}
    budget = "policy/v1/poddisruptionbudgets"
    objects.api.wait(
        lambda: objects.api.get(budget, "engine-protect", engine.namespace)["status"].get(
            "expectedPods"
        ) == kept,
        "the budget's count",
    )  # fmt: skip
    shown = engine.run("status", "-n", engine.namespace, "--node", second_node.name)
    assert shown.stderr.count(f"holds a drain of {second_node.name} until ") == kept
    would = engine.run("cancel", "-n", engine.namespace, "--node", second_node.name, "--dry-run")
    assert would.stdout.count("would be cancelled") == len(jobs)
    said = drain(cluster, second_node)
    assert f'evicting pods/"{pods["kept-0"]["metadata"]["name"]}"' in said
    assert "disruption budget" in said
    assert "gone-" not in "".join(one for one in said.splitlines() if "error when evicting" in one)

    run = finish(process, ends=0)
    outcomes = {job: [one["outcome"] for one in run.job(job)["attempts"]] for job in jobs}
    assert outcomes == {
        **{job: ["Succeeded"] for job in protected},
        **{job: ["Evicted", "Succeeded"] for job in evicted},
    }


@pytest.fixture
def preempt(objects: Objects, second_node: Node, engine: Engine) -> Iterator[Callable[[], None]]:
    """Call it, and a pod of a higher PriorityClass wants what is left of the second node."""
    name = f"high-{objects.namespace}"
    high = {"metadata": {"name": name}, "value": 1000}
    objects.api.create(PRIORITIES, high)

    def begin() -> None:
        cores = objects.api.get("nodes", second_node.name)["status"]["allocatable"]["cpu"]
        pod = {
            "metadata": {"name": "urgent"},
            "spec": {
                "priorityClassName": name,
                "nodeSelector": {"kubernetes.io/hostname": second_node.name},
                "containers": [
                    {
                        "name": "main",
                        "image": engine.image,
                        "command": ["sleep", "600"],
                        "resources": {"requests": {"cpu": cores}},
                    }
                ],
            },
        }
        objects.api.create("pods", pod, objects.namespace)

    yield begin
    objects.api.delete(PRIORITIES, name)


@pytest.mark.parametrize(
    "retry", [{}, {"retry": {"max": 1, "on": ["Preempted"]}}], ids=["", "retry"]
)
def test_a_preempted_job_is_told_as_preempted_and_is_tried_again_elsewhere_if_it_says_so(
    engine: Engine,
    objects: Objects,
    other_node: SecondNode,
    preempt: Callable[[], None],
    retry: dict[str, Any],
) -> None:
    little = {"requests": {"cpu": "100m"}}
    engine.spec("job", **other_node.spec("job"), resources=little, **retry)
    process = engine.start()
    first = objects.wait_until_running("job")
    preempt()
    job = finish(process, ends=0 if retry else 7).job("job")
    outcomes = [attempt["outcome"] for attempt in job["attempts"]]
    assert outcomes == (["Preempted", "Succeeded"] if retry else ["Preempted"])
    assert "preempting to accommodate a higher priority pod" in job["attempts"][0]["message"]
    later = [attempt["uid"] for attempt in job["attempts"][1:]]
    assert first["metadata"]["uid"] not in later

    def left() -> list[str]:
        return [pod["metadata"]["uid"] for pod in objects.pods() if is_job(pod)]

    objects.api.wait(lambda: left() == later, "the end of the first pod, and of no other")
    again = engine.reconcile(ends=0 if retry else 7)
    assert not again.job("job")["changed"]


def is_job(pod: Object) -> bool:
    return "jobs.engine/job" in pod["metadata"].get("labels", {})
