"""A job that isn't let in says so, as what it is, and as no change."""

from datetime import UTC, datetime

import pytest

from engine.cluster import api
from engine.cluster.connect import connect
from engine.runtime.lease import lease_name, with_holder
from engine.sandbox import FOREVER, Fault, Refuse, Run, Sandbox
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")


def row(engine: Engine, *arguments: str, ends: int) -> list[str]:
    """The job's row in the table, and the last line."""
    said = engine.run("reconcile", "--once", str(engine.folder), *arguments, ends=ends)
    (*_, last) = said.stdout.splitlines()
    return [*said.stdout.splitlines()[1].split()[1:4], last]


def test_a_job_of_another_source_is_not_told_as_that_ones_success(engine: Engine) -> None:
    engine.spec("a", script="true")
    engine.reconcile("--source", "ours", ends=0)
    assert row(engine, "--source", "web", ends=5)[::3] == ["Refused", "1 job: 1 refused, 0 changed"]
    (told,) = engine.reconcile("--source", "web", ends=5).result["jobs"]
    assert (told["state"], told["reason"], told["changed"]) == ("Refused", None, False)
    assert told["attempts"] == []
    assert "belongs to source 'ours', not to 'web'" in told["error"]


def test_a_forbidden_create_is_no_change_and_names_the_doctor(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.deny("create", "pods")
    engine.spec("a", script="true")
    assert row(engine, ends=6)[::3] == ["Forbidden", "1 job: 1 forbidden, 0 changed"]
    (told,) = engine.reconcile(ends=6).result["jobs"]
    assert (told["state"], told["changed"]) == ("Forbidden", False)
    assert told["error"].endswith("(engine doctor lists what is missing)")
    assert objects.pods() == []


def test_the_doctor_calls_nothing_ok_that_it_could_not_look_at(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.deny("list", "resourcequotas")
    sandbox.deny("get", "namespaces")
    said = engine.run("doctor", "-n", engine.namespace, ends=0).stdout.splitlines()
    told = {tuple(line.split(maxsplit=1)) for line in said}
    place = engine.namespace
    skipped = {" ".join(rest.split()) for status, rest in told if status == "SKIPPED"}
    assert skipped == {
        f"quota {place} needs list on resourcequotas",
        f"namespace {place} needs get on namespaces",
        f"pod security {place} needs get on namespaces",
        f"protection {place} the server could not find the requested resource",
    }


def test_a_tenant_of_the_jobs_namespace_holds_no_engine_up_by_a_lease_there(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.namespace("engine")
    new = {"metadata": {"name": lease_name("web"), "namespace": engine.namespace}}
    theirs = with_holder(new, "tenant", "web", 3600.0, datetime.now(UTC))
    client = connect(str(engine.kubeconfig)).client
    api.create(client, theirs)
    engine.spec("a", script="true")
    with EngineProcess(engine, "--source", "web", "--lease-namespace", "engine") as staying:
        staying.wait_for_line("/a: Succeeded")
        (own,) = sandbox.objects("leases", "engine")
        assert own["metadata"]["name"] == "engine-web"
        assert "tenant" not in staying.text
    (left,) = sandbox.objects("leases", engine.namespace)
    assert left["spec"]["holderIdentity"] == "tenant"


def test_status_does_not_deny_an_engine_whose_lease_it_may_not_read(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.namespace("engine")
    sandbox.deny("list", "leases", namespace="")
    sandbox.node.will(Run(duration=FOREVER), pod="a-*")
    engine.spec("a", script="true")
    with EngineProcess(engine, "--source", "web", "--lease-namespace", "engine") as staying:
        staying.wait_for_line("/a: Running")
        told = engine.run("status", "-n", engine.namespace, ends=0).stderr
    assert "whether an engine follows source web is not known" in told


def test_a_second_file_of_a_name_is_not_told_as_a_removal(engine: Engine) -> None:
    engine.spec("a", script="true")
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/a: Succeeded")
        engine.spec("a", file="second.yaml", script="true")
        staying.wait_for_line("a second job is named a")
        staying.wait_for_line("/a: no valid spec any more; the job is no longer managed")
        assert "spec removed" not in staying.text
        assert "deleted" not in staying.text
    assert engine.status()["a"]["state"] == "Succeeded"


def test_a_refused_stamp_is_no_failure_of_a_job_that_has_succeeded(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    denied = Refuse(403, "Forbidden", 'admission webhook "no.example" denied the request: no')
    fault = Fault(denied, verb="patch", resource="pods", skip=1, times=None)
    sandbox.faults.add(fault)
    engine.spec("a", script="true", ttlAfterFinished={"success": "1h"})
    for _ in range(2):
        said = engine.reconcile(ends=0)
        assert said.job("a")["state"] == "Succeeded"
        assert said.stderr.count("can't be updated (jobs.engine/expires-at): ") == 1
        assert "denied the request: no" in said.stderr
    assert not said.job("a")["changed"]
    sandbox.faults.remove(fault)
    engine.reconcile(ends=0)
    assert "jobs.engine/expires-at" in objects.pod("a")["metadata"]["annotations"]


def test_a_mark_that_can_not_be_removed_is_no_failure_of_a_job_that_has_succeeded(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("a", script="true")
    engine.spec("b", script="true")
    engine.reconcile("--source", "web", ends=0)
    text = (engine.folder / "a.yaml").read_text()
    (engine.folder / "a.yaml").unlink()
    engine.reconcile("--source", "web", ends=0)
    engine.write("a.yaml", text)
    denied = Refuse(403, "Forbidden", 'admission webhook "no.example" denied the request: no')
    fault = Fault(denied, verb="update", resource="configmaps", times=None)
    sandbox.faults.add(fault)
    said = engine.reconcile("--source", "web", ends=0)
    assert said.job("a")["state"] == "Succeeded"
    assert said.stderr.count("the mark of its record can't be removed") == 1
    sandbox.faults.remove(fault)
    engine.reconcile("--source", "web", ends=0)
    found = objects.api.get("configmaps", "a.record", engine.namespace)
    assert "jobs.engine/orphaned-since" not in (found["metadata"].get("annotations") or {})
