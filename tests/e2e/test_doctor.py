"""`engine doctor` on a cluster that is well, that withholds something, and that doesn't answer."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from engine.sandbox import Fault, Latency, Sandbox
from tests.cluster.cluster import Cluster
from tests.support.clusters import ClusterUnderTest, engine_on
from tests.support.engine import Engine
from tests.support.objects import Objects

Quota = Callable[..., Any]
RBAC = "rbac.authorization.k8s.io"
SHIPPED = Path(__file__).parents[2] / "deploy" / "engine.yaml"
OF_PEOPLE = {
    "rights: logs",
    "rights: --prune",
    "rights: expired pods",
    "rights: ageing records",
    "rights: missing namespaces",
}
"""What deploy/engine.yaml leaves out: it takes more rights than an engine of one namespace has."""


@pytest.fixture
def as_shipped(cluster: Cluster, objects: Objects) -> Iterator[Path]:
    """A kubeconfig with the rights of deploy/engine.yaml in the test's namespace."""
    api, place = objects.api, objects.namespace
    user = f"shipped-{place}"
    made = []
    for document in YAML(typ="safe", pure=True).load_all(SHIPPED.read_text()):
        if document["kind"] not in ("Role", "ClusterRole"):
            continue
        kind, name = document["kind"], f"{user}-{document['metadata']['name']}"
        where = place if kind == "Role" else ""
        role = {"metadata": {"name": name}, "rules": document["rules"]}
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        }
        for plural, body in ((f"{kind.lower()}s", role), (f"{kind.lower()}bindings", binding)):
            api.create(f"{RBAC}/v1/{plural}", body, where)
            made.append((f"{RBAC}/v1/{plural}", name, where))
    yield cluster.kubeconfig_for(user)
    for plural, name, where in made:
        api.delete(plural, name, where)


def checks(engine: Engine, *arguments: str, ends: int = 0) -> dict[str, dict[str, Any]]:
    """Results in the test's namespace, and of the cluster, by their check."""
    run = engine.run("doctor", "-n", engine.namespace, "-o", "json", *arguments, ends=ends)
    return {entry["check"]: entry for entry in run.result["checks"]}


OF_THE_CLUSTER = {"protection", "user namespaces"}
"""What the cluster's administrator may give, and nothing needs by default."""


def hold_to_baseline(objects: Objects) -> None:
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
    objects.api.patch("namespaces", objects.namespace, labels)


def test_an_administrator_finds_nothing_wrong(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    hold_to_baseline(objects)
    found = checks(engine)
    statuses = {name: entry["status"] for name, entry in found.items()}
    assert {statuses[name] for name in statuses.keys() - OF_THE_CLUSTER} == {"OK"}, found
    assert "answers in" in found["reach"]["message"]
    assert found["version"]["message"].startswith("Kubernetes 1.")
    told = engine.run("doctor", "-n", engine.namespace, ends=0)
    assert told.stdout.splitlines()[0].split() == ["STATUS", "CHECK", "NAMESPACE", "FOUND"]
    assert "rights: running jobs" in told.stdout


@pytest.mark.only("real")
def test_the_shipped_role_runs_jobs_and_is_told_what_it_is_without(
    target: ClusterUnderTest, engine: Engine, as_shipped: Path
) -> None:
    engine.kubeconfig = as_shipped
    found = checks(engine)
    assert found["rights: running jobs"]["status"] == "OK"
    degraded = {name for name, entry in found.items() if entry["status"] == "DEGRADED"}
    assert degraded - OF_THE_CLUSTER == OF_PEOPLE
    assert found["namespace"]["status"] == "SKIPPED"
    assert all(found[name]["remedy"] for name in OF_PEOPLE)
    engine.spec("job", script="true")
    engine.reconcile(ends=0)


@pytest.mark.only("real")
def test_who_has_no_right_at_all_is_told_each_and_where_to_get_them(
    target: ClusterUnderTest, engine: Engine, cluster: Cluster
) -> None:
    engine.kubeconfig = cluster.kubeconfig_for(f"nobody-{engine.namespace}")
    found = checks(engine, ends=6)
    assert {found["reach"]["status"], found["version"]["status"]} == {"OK"}
    jobs = found["rights: running jobs"]
    assert jobs["status"] == "FAILED"
    for right in ("pods: create, get", "secrets: create", "configmaps: create"):
        assert right in jobs["message"]
    assert "a Role with these rights" in jobs["remedy"]
    others = {e["status"] for name, e in found.items() if name.startswith("rights: ")} - {"FAILED"}
    assert others == {"DEGRADED"}


def test_doctor_changes_nothing(target: ClusterUnderTest, engine: Engine) -> None:
    target.forget_requests()
    checks(engine)
    asked = set(target.requests()) - {"create", "post"}
    assert asked <= {"get", "list"}


def test_a_quota_that_is_full_is_reported(
    target: ClusterUnderTest, engine: Engine, limit: Quota
) -> None:
    limit({"requests.cpu": "4"}, name="compute")
    assert checks(engine)["quota"]["message"] == "compute: not full"
    limit({"pods": "0"}, name="none")
    run = engine.run("doctor", "-n", engine.namespace, "-o", "json", ends=0)
    assert run.result["status"] == "DEGRADED"
    messages = [one["message"] for one in run.result["checks"] if one["check"] == "quota"]
    assert messages == ["none is full (pods 0 of 0): new jobs wait in the queue"]


def test_a_namespace_without_a_pod_security_label_is_named(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    found = checks(engine)["pod security"]
    assert (found["status"], found["namespace"]) == ("DEGRADED", engine.namespace)
    assert f"kubectl label namespace {engine.namespace}" in found["remedy"]
    hold_to_baseline(objects)
    found = checks(engine)["pod security"]
    assert (found["status"], found["message"]) == ("OK", "pods are held to baseline")


def test_a_namespace_that_is_not_there_fails_with_what_to_do(
    target: ClusterUnderTest, engine: Engine
) -> None:
    told = engine.run("doctor", "-n", "no-such-namespace", ends=6)
    (row,) = [line for line in told.stdout.splitlines() if line.startswith("FAILED")]
    assert "kubectl create namespace no-such-namespace" in row


@pytest.mark.only("sandbox")
def test_each_right_that_is_withheld_is_told_with_what_is_lost(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    hold_to_baseline(objects)
    for verb, resource in (("list", "resourcequotas"), ("get", "pods/log"), ("list", "nodes")):
        sandbox.deny(verb, resource)
    found = checks(engine)
    degraded = {name for name, entry in found.items() if entry["status"] == "DEGRADED"}
    assert degraded - OF_THE_CLUSTER == {
        "rights: quota queue",
        "rights: logs",
        "rights: nodes with images",
    }
    assert "pods/log: get" in found["rights: logs"]["message"]
    sandbox.deny("patch", "pods")
    found = checks(engine, ends=6)
    assert found["rights: running jobs"]["status"] == "FAILED"
    assert "pods: patch" in found["rights: running jobs"]["message"]


@pytest.mark.only("sandbox")
def test_who_may_do_nothing_is_told_so_and_not_refused(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.deny("*", "*")
    found = checks(engine, ends=6)
    assert found["reach"]["status"] == "OK"
    assert found["rights: running jobs"]["status"] == "FAILED"
    quota = found["quota"]
    assert (quota["status"], quota["message"]) == ("SKIPPED", "needs list on resourcequotas")
    assert found["namespace"]["message"] == "needs get on namespaces"


@pytest.mark.only("sandbox")
def test_a_server_that_is_away_or_hangs_is_a_finding_and_soon(
    engine: Engine, tmp_path: Path, sandbox: Sandbox
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        text = engine.kubeconfig.read_text()
        address = sandbox.url
        engine.kubeconfig = tmp_path / "hung"
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        engine.kubeconfig.write_text(text.replace(address, url))
        run = engine.run("doctor", "-o", "json", ends=6, timeout=60)
    (found,) = run.result["checks"]
    assert (found["check"], found["status"]) == ("reach", "FAILED")
    assert url in found["message"]
    assert f"waiting for {url}: no answer for 2s" in run.lines
    gone = engine.run("doctor", ends=6)
    assert "Connection refused" in gone.stdout
    engine.kubeconfig.write_text(text.replace(address, "https://no-such-host.invalid:6443"))
    unknown = engine.run("doctor", ends=6)
    (row,) = [line for line in unknown.stdout.splitlines() if line.startswith("FAILED")]
    assert "https://no-such-host.invalid:6443: no answer from the API server" in row
    missing = engine.run("doctor", "--context", "nope", ends=6)
    assert missing.stdout.splitlines()[1].startswith("FAILED")


@pytest.mark.only("sandbox")
def test_a_request_that_hangs_half_way_ends_the_examination(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.faults.add(Fault(Latency(30.0), verb="list", resource="resourcequotas"))
    run = engine.run("doctor", "-n", engine.namespace, "-o", "json", ends=6, timeout=60)
    assert [entry["check"] for entry in run.result["checks"]] == ["reach"]


def test_a_server_that_is_too_old_fails_and_the_rest_is_still_looked_at(tmp_path: Path) -> None:
    with Sandbox(version="1.28") as old:
        engine = engine_on(old, tmp_path)
        found = checks(engine, ends=6)
        told = engine.run("doctor", "-n", engine.namespace, ends=6)
    assert {name for name, entry in found.items() if entry["status"] == "FAILED"} == {"version"}
    assert "1.28, older than 1.30" in found["version"]["message"]
    (row,) = [line for line in told.stdout.splitlines() if line.startswith("FAILED")]
    assert "upgrade the cluster, or use another context" in row
