"""What a staying engine asks of the API is what docs/operations.md and deploy/ give it."""

import signal
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from engine.sandbox import Fault, Refuse, Run, Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import COMMAND, Engine, finish
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

DEPLOY = Path(__file__).parents[2] / "deploy" / "engine.yaml"
# In a ClusterRole, and optional.
OUTSIDE = {("get", "namespaces")}


def granted() -> set[tuple[str, str]]:
    documents = YAML(typ="safe", pure=True).load_all(DEPLOY.read_text(encoding="utf-8"))
    return {
        (verb, resource)
        for document in documents
        if document["kind"] in ("Role", "ClusterRole")
        for rule in document["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def test_the_role_of_the_deployment_suffices_for_all_that_an_engine_does(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """Secrets, a full quota, a registry that is down, a failure, a spec that goes."""
    full = Refuse(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q, requested: pods=1')
    sandbox.faults.add(Fault(full, verb="create", resource="pods", name="waits-*", times=1))
    sandbox.images.down("down.example")
    sandbox.node.will(Run(exit_code=3), pod="fails-*")
    sandbox.node.will(Run(duration=60), pod="long-*")
    engine.spec("fails", script="exit 3", ttlAfterFinished={"failure": "1s"})
    engine.spec("waits", script="true")
    engine.spec("pulls", image="down.example/tool:1", pullPolicy=["Always", "IfNotPresent"])
    engine.spec("long", script="sleep 60", secrets={"T": {"value": "some-value"}})
    process = stay(engine)
    api = objects.api
    try:
        objects.wait_until_running("long")
        (secret,) = sandbox.objects("secrets", NAMESPACE)
        api.delete("secrets", secret["metadata"]["name"], NAMESPACE)
        api.wait(lambda: ended(engine, "fails", "pulls", "waits"), "end of three jobs")
        (engine.folder / "long.yaml").unlink()
        api.wait(lambda: "long" not in engine.status(), "removal of the long job")
        api.wait(lambda: "fails" not in jobs_with_pods(sandbox), "pruning of the failed pod")
    finally:
        process.send_signal(signal.SIGTERM)
        finish(process, ends=0)
    asked = {(entry.verb, entry.resource) for entry in sandbox.requests.where() if entry.resource}
    assert asked - OUTSIDE <= granted()
    assert asked >= {("create", "events"), ("update", "leases"), ("watch", "configmaps")}


def stay(engine: Engine) -> subprocess.Popen[str]:
    flags = ["--leader-elect", "--prune", "--allow-empty", "--prune-interval", "1s"]
    return subprocess.Popen(
        [*COMMAND, "reconcile", str(engine.folder), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=engine.environment_of_process(),
        stdin=subprocess.DEVNULL,
    )


def jobs_with_pods(sandbox: Sandbox) -> set[str]:
    pods = sandbox.objects("pods", NAMESPACE)
    return {pod["metadata"]["labels"]["jobs.engine/job"] for pod in pods}


def ended(engine: Engine, *jobs: str) -> bool:
    status = engine.status()
    return all(status.get(job, {}).get("state") in ("Succeeded", "Failed") for job in jobs)
