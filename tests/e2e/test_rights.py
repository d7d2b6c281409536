"""What a staying engine asks of the API is what docs/operations.md lists and the chart gives."""

import json
import re
import signal

import pytest

from engine.cluster.records import KEY
from engine.sandbox import Fault, Refuse, Run, Sandbox
from tests.support.client import eventually
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine, Process, finish
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects
from tests.support.pages import rights_of, table_of

pytestmark = pytest.mark.only("sandbox")

# For a Secret that is in the way, and a pull whose status has no cause.
ACCIDENTS = {("get", "secrets"), ("delete", "secrets"), ("list", "events")}
ONCE = {("get", "namespaces")}


def told() -> set[tuple[str, str]]:
    rows = (
        (re.sub(r"`| \(.*\)", "", row[0]), row[1]) for row in table_of("operations.md", "Rights")
    )
    return {(verb, resource) for resource, verbs in rights_of(rows).items() for verb in verbs}


def test_the_rights_on_the_page_suffice_for_all_that_an_engine_does_and_none_is_idle(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    """Secrets, a full quota, an image that no registry has, a failure, a spec that goes."""
    full = Refuse(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q, requested: pods=1')
    sandbox.faults.add(Fault(full, verb="create", resource="pods", name="waits-*", times=1))
    sandbox.images.missing("down.example/tool:1")
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
        engine.spec("long", script="sleep 60", secrets={"T": {"value": "some-value"}}, ttl="2d")
        api.wait(lambda: is_kept(sandbox, "172800"), "the new ttl on all that the job has")
        (secret,) = sandbox.objects("secrets", NAMESPACE)
        api.delete("secrets", secret["metadata"]["name"], NAMESPACE)
        api.wait(lambda: ended(sandbox, "fails", "pulls", "waits"), "end of three jobs")
        (engine.folder / "long.yaml").unlink()
        api.wait(lambda: "long" not in states(sandbox), "removal of the long job")
        api.wait(lambda: "fails" not in jobs_with_pods(sandbox), "pruning of the failed pod")
    finally:
        process.send_signal(signal.SIGTERM)
        finish(process, ends=0)
    requests = [one for one in sandbox.requests.where() if one.user_agent.startswith("engine/")]
    asked = {(one.verb, one.resource) for one in requests if one.resource}
    assert asked <= told()
    assert told() - asked - ACCIDENTS == ONCE, "a right that nothing uses"


def stay(engine: Engine) -> Process:
    flags = ["--leader-elect", "--prune", "--allow-empty", "--prune-interval", "1s"]
    flags += ["--logs-dir", str(engine.folder.with_name("logs"))]
    return engine.begin("reconcile", str(engine.folder), *flags)


def is_kept(sandbox: Sandbox, ttl: str) -> bool:
    """Whether the long job's pod, Secret and ConfigMap all have this TTL."""
    found = [
        one["metadata"]["annotations"].get("jobs.engine/ttl")
        for kind in ("pods", "secrets", "configmaps")
        for one in sandbox.objects(kind, NAMESPACE)
        if one["metadata"]["name"].startswith("long-")
    ]
    return found == [ttl] * 3


def jobs_with_pods(sandbox: Sandbox) -> set[str]:
    pods = sandbox.objects("pods", NAMESPACE)
    return {pod["metadata"]["labels"]["jobs.engine/job"] for pod in pods}


def states(sandbox: Sandbox) -> dict[str, str]:
    """Of every job, as its record has it: `engine status` has rights of its own."""
    return {
        record["metadata"]["labels"]["jobs.engine/job"]: json.loads(record["data"][KEY])["state"]
        for record in sandbox.objects("configmaps", NAMESPACE)
        if record["metadata"].get("labels", {}).get("jobs.engine/component") == "record"
    }


def ended(sandbox: Sandbox, *jobs: str) -> bool:
    found = states(sandbox)
    return all(found.get(job) in ("Succeeded", "Failed") for job in jobs)


def test_a_spec_in_a_namespace_that_may_not_be_read_puts_no_engine_out_of_service(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.namespace("closed")
    sandbox.deny("list", "*", namespace="closed")
    engine.spec("ours", command=["true"])
    write_into(engine, "closed", "theirs")
    with EngineProcess(engine) as running:
        running.wait_for_line("/ours: Succeeded", within=60)
        running.wait_for_line("/api/v1/namespaces/closed/")
        assert "[+]caches ok\n" in running.wait_for_probe("/readyz", 200)


def test_an_engine_that_may_read_none_of_its_namespaces_is_not_ready_until_it_may(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.namespace("closed")
    closed = sandbox.deny("list", "*", namespace="closed")
    write_into(engine, "closed", "theirs")
    with EngineProcess(engine, ready=False) as running:
        running.wait_for_line("closed", within=60)
        assert "[-]caches: " in running.wait_for_probe("/readyz", 503)
        sandbox.allow(closed)
        running.wait_for_line("closed/theirs: Succeeded", within=60)
        eventually(lambda: "namespaces" not in running.wait_for_probe("/readyz", 200))


@pytest.mark.parametrize("resource", ["pods", "*"])
def test_where_watches_are_refused_and_lists_are_not_a_job_ends_all_the_same(
    engine: Engine, sandbox: Sandbox, resource: str
) -> None:
    sandbox.deny("watch", resource)
    sandbox.node.will(Run(duration=3.0), pod="*")
    engine.spec("job", command=["true"])
    run = engine.reconcile("--timeout", "60s", ends=0)
    assert run.job("job")["state"] == "Succeeded"
    assert "watch of " in run.stderr


def write_into(engine: Engine, namespace: str, name: str) -> None:
    """A job's spec in another namespace than the engine's own."""
    own, engine.namespace = engine.namespace, namespace
    engine.spec(name, command=["true"])
    engine.namespace = own
