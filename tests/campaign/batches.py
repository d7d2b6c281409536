"""Batches of jobs of four kinds, and how it is judged that each of them ran exactly once."""

from collections import Counter

from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.support.engine import Engine
from tests.support.objects import Objects

JOBS_IN_A_BATCH = 20
EXPECTED = {
    "plain": "Succeeded",
    "owns": "Succeeded",
    "fails": "ScriptFailed",
    "falls": "Succeeded",
}


def write_batch(engine: Engine, images: Images, batch: int) -> list[str]:
    """Names of the batch's jobs."""
    return [write_job(engine, images, batch, number) for number in range(JOBS_IN_A_BATCH)]


def write_job(engine: Engine, images: Images, batch: int, number: int, file: str = "") -> str:
    """Write one job's spec, to the folder unless `file` says otherwise; its name."""
    match number % 4:
        case 0:
            return engine.spec(f"plain-{batch}-{number}", file=file, script="sleep 0.3")
        case 1:
            secrets = {"TOKEN": {"value": "anything"}}
            name = f"owns-{batch}-{number}"
            return engine.spec(name, file=file, script="test $TOKEN", secrets=secrets)
        case 2:
            return engine.spec(f"fails-{batch}-{number}", file=file, script="exit 3")
        case _:
            policies = ["Never", "IfNotPresent"]
            name, ref = f"falls-{batch}-{number}", images.build()
            return engine.spec(name, file=file, image=ref, script="true", pullPolicy=policies)


def kind_of(name: str) -> str:
    return name.partition("-")[0]


def attempts_of(name: str) -> int:
    """How many attempts a run of this job takes."""
    return 2 if kind_of(name) == "falls" else 1


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


def assert_owned(objects: Objects) -> None:
    """Every Secret and ConfigMap of the engine has one owner, and that is a pod."""
    pods = {pod["metadata"]["uid"] for pod in objects.pods()}
    labels = "app.kubernetes.io/managed-by=engine,jobs.engine/component!=record"
    for kind in ("secrets", "configmaps"):
        for item in objects.api.list(kind, objects.namespace, labels=labels):
            (owner,) = item["metadata"]["ownerReferences"]
            assert owner["uid"] in pods, f"left behind: {kind}/{item['metadata']['name']}"
