"""A node that is drained while a job runs on it."""

import subprocess

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.support.engine import Engine, finish
from tests.support.objects import Objects

pytestmark = pytest.mark.only("real")

WAITS = "trap 'exit 143' TERM\nsleep 120 & wait\n"


def drain(cluster: Cluster, node: Node) -> None:
    """As an administrator does it, with each pod's own grace period."""
    kubectl = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig)]
    options = ["--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s"]
    subprocess.run([*kubectl, "drain", node.name, *options], check=True, capture_output=True)


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
    engine: Engine, objects: Objects, cluster: Cluster, second_node: Node
) -> None:
    script = f"case $NODE in {second_node.name}) {'; '.join(WAITS.splitlines())};; esac\n"
    prefers = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [
                            {
                                "key": "kubernetes.io/hostname",
                                "operator": "In",
                                "values": [second_node.name],
                            }
                        ]
                    },
                }
            ]
        }
    }
    name_of_node = {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    main = {"name": "main", "env": [{"name": "NODE", **name_of_node}]}
    engine.spec(
        "moved",
        script=script,
        podPatch={"spec": {"affinity": prefers, "containers": [main]}},
        retry={"max": 1, "on": ["Evicted"]},
    )
    process = engine.start()
    running = objects.wait_until_running("moved")
    assert running["spec"]["nodeName"] == second_node.name
    drain(cluster, second_node)

    run = finish(process, ends=0)
    assert [a["outcome"] for a in run.job("moved")["attempts"]] == ["Evicted", "Succeeded"]
    assert objects.pod("moved")["spec"]["nodeName"] == "node-1"
