"""What a job wrote last is told whatever ended it, and never a secret with it."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.objects import Objects

pytestmark = [pytest.mark.only("real"), pytest.mark.timeout(300)]

SECRET = "hunter2-of-the-test"
SAYS = 'echo "begun with $TOKEN"; trap "echo stopping; exit 3" TERM\n'
WAITS = f"{SAYS}sleep 120 & wait\n"
GREEDY = f"{SAYS}i=x; while true; do i=$i$i; done\n"
KINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "exits": ({"script": f"{SAYS}echo boom; exit 1"}, "ScriptFailed", "begun with ***\nboom"),
    "deadline": ({"script": WAITS, "timeout": 3}, "DeadlineExceeded", "begun with ***\nstopping"),
    "greedy": (
        {"script": GREEDY, "resources": {"limits": {"memory": "24Mi"}}},
        "OOMKilled",
        "begun with ***",
    ),
    "evicted": ({"script": WAITS}, "Evicted", "begun with ***\nstopping"),
    "deleted": ({"script": WAITS}, "PodDeleted", "begun with ***\nstopping"),
    "killed": ({"script": WAITS}, "PodDeleted", ""),
}


@pytest.fixture
def evict(cluster: Cluster, objects: Objects) -> Callable[[str], None]:
    """By the API, as a drain does."""

    def ask(pod: str) -> None:
        path = f"/api/v1/namespaces/{objects.namespace}/pods/{pod}/eviction"
        kubectl = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig)]
        body = f'{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {{"name": "{pod}"}}}}'
        asked = [*kubectl, "create", "--raw", path, "-f", "-"]
        subprocess.run(asked, check=True, capture_output=True, input=body.encode())

    return ask


def test_the_last_words_of_a_job_are_kept_after_each_end_but_that_of_a_pod_killed_at_once(
    target: ClusterUnderTest, engine: Engine, objects: Objects, evict: Callable[[str], None]
) -> None:
    engine.environment["ENGINE_SECRET_TOKEN"] = SECRET
    for name, (spec, _, _) in KINDS.items():
        engine.spec(name, secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}}, **spec)
    process = engine.start()
    pods = {name: objects.wait_until_running(name) for name in ("evicted", "deleted", "killed")}
    names = {name: pod["metadata"]["name"] for name, pod in pods.items()}
    objects.api.wait(
        lambda: all("begun" in objects.log(name) for name in names), "the first words of each"
    )
    evict(names["evicted"])
    target.delete_pod(names["deleted"])
    target.delete_pod(names["killed"], "--grace-period=0", "--force")
    run = finish(process, ends=7)
    found = {name: run.job(name) for name in KINDS}
    said = {
        name: "\n".join(words["message"] for words in job["attempts"][0]["lastWords"])
        for name, job in found.items()
    }
    assert {name: job["reason"] for name, job in found.items()} == {
        name: reason for name, (_, reason, _) in KINDS.items()
    }
    assert said == {name: words for name, (_, _, words) in KINDS.items()}
    assert found["exits"]["message"] == "exit code 1: boom"
    records = objects.api.list("configmaps", objects.namespace)
    events = objects.api.list("events", objects.namespace)
    ours = [one for one in events if "engine/" in (one.get("source") or {}).get("component", "")]
    assert SECRET not in run.stdout + run.stderr
    kept = [one for one in records if one["metadata"]["name"].endswith(".record")]
    assert not any(SECRET in str(one) for one in (*kept, *ours))
    assert any("stopping" in one["message"] for one in ours)
