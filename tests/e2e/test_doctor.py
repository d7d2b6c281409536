"""`engine doctor` on a cluster that is well, that withholds something, and that doesn't answer."""

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
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
    "rights: status",
    "rights: expired pods",
    "rights: ageing records",
    "rights: missing namespaces",
}
"""What deploy/engine.yaml leaves out: it takes more rights than an engine of one namespace has."""


@pytest.fixture
def as_shipped(cluster: Cluster, objects: Objects) -> Iterator[Path]:
    """The kubeconfig of somebody with the rights of deploy/engine.yaml in the test's namespace."""
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
    """Findings in the test's namespace, and of the cluster, by their check."""
    run = engine.run("doctor", "-n", engine.namespace, "-o", "json", *arguments, ends=ends)
    return {entry["check"]: entry for entry in run.result["checks"]}


def test_an_administrator_finds_nothing_wrong(target: ClusterUnderTest, engine: Engine) -> None:
    found = checks(engine)
    assert {entry["status"] for entry in found.values()} == {"OK"}, found
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
    degraded = {name for name, entry in found.items() if entry["status"] != "OK"}
    assert degraded == OF_PEOPLE
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
    assert jobs["status"] == "failed"
    for right in ("pods: create, get", "secrets: create", "configmaps: create"):
        assert right in jobs["message"]
    assert "deploy/engine.yaml" in jobs["remedy"]
    others = {e["status"] for name, e in found.items() if name.startswith("rights: ")} - {"failed"}
    assert others == {"degraded"}


def test_doctor_changes_nothing(target: ClusterUnderTest, engine: Engine) -> None:
    target.forget_requests()
    checks(engine)
    asked = set(target.requests()) - {"create", "post"}
    assert asked <= {"get", "list"}


def test_a_quota_that_is_used_up_and_asks_for_limits_is_told(
    target: ClusterUnderTest, engine: Engine, limit: Quota
) -> None:
    limit({"pods": "0"}, name="none")
    limit({"requests.cpu": "4"}, name="compute")
    run = engine.run("doctor", "-n", engine.namespace, "-o", "json", ends=0)
    assert run.result["status"] == "degraded"
    messages = [one["message"] for one in run.result["checks"] if one["check"] == "quota"]
    assert any("none is used up (pods 0 of 0): new jobs wait" in words for words in messages)
    assert any("don't say requests.cpu" in words for words in messages)


def test_an_engine_that_has_not_renewed_its_lease_is_told(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    lease = {
        "metadata": {
            "name": f"engine-{target.source}",
            "labels": {
                "app.kubernetes.io/managed-by": "engine",
                "jobs.engine/source": target.source,
            },
        },
        "spec": {
            "holderIdentity": "gone_1",
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }
    objects.api.create("coordination.k8s.io/v1/leases", lease, engine.namespace)
    found = checks(engine)["lease"]
    assert found["status"] == "degraded"
    assert "gone_1 led source" in found["message"]
    renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = {"spec": {"renewTime": renewed}}
    name = f"engine-{target.source}"
    objects.api.patch("coordination.k8s.io/v1/leases", name, body, engine.namespace)
    assert checks(engine)["lease"]["status"] == "OK"


def test_pods_that_the_server_holds_to_more_than_validate_are_told(
    target: ClusterUnderTest, engine: Engine, objects: Objects, tmp_path: Path
) -> None:
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    objects.api.patch("namespaces", engine.namespace, labels)
    assert checks(engine)["pod security"]["status"] == "degraded"
    config = tmp_path / "engine.yaml"
    config.write_text(
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {podSecurity: restricted}\n"
    )
    assert checks(engine, "--config", str(config))["pod security"]["status"] == "OK"


def test_a_login_that_pods_are_promised_and_is_not_there_is_told(
    target: ClusterUnderTest, engine: Engine, objects: Objects
) -> None:
    account = {"imagePullSecrets": [{"name": "login"}]}
    objects.api.wait(
        lambda: objects.api.find("serviceaccounts", "default", engine.namespace), "service account"
    )
    objects.api.patch("serviceaccounts", "default", account, engine.namespace)
    found = checks(engine)["registry secrets"]
    assert found["status"] == "degraded"
    assert "names login: missing" in found["message"]
    secret = {
        "metadata": {"name": "login"},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": '{"auths": {}}'},
    }
    objects.api.create("secrets", secret, engine.namespace)
    assert checks(engine)["registry secrets"]["status"] == "OK"


def test_a_namespace_that_is_not_there_fails_with_what_to_do(
    target: ClusterUnderTest, engine: Engine
) -> None:
    told = engine.run("doctor", "-n", "no-such-namespace", ends=6)
    (row,) = [line for line in told.stdout.splitlines() if line.startswith("failed")]
    assert "kubectl create namespace no-such-namespace" in row


@pytest.mark.only("sandbox")
def test_each_right_that_is_withheld_is_told_with_what_is_lost(
    engine: Engine, sandbox: Sandbox
) -> None:
    for verb, resource in (("list", "resourcequotas"), ("get", "pods/log"), ("list", "nodes")):
        sandbox.deny(verb, resource)
    found = checks(engine)
    degraded = {name for name, entry in found.items() if entry["status"] == "degraded"}
    assert degraded == {"rights: quota queue", "rights: logs", "rights: nodes with images"}
    assert "pods/log: get" in found["rights: logs"]["message"]
    sandbox.deny("patch", "pods")
    found = checks(engine, ends=6)
    assert found["rights: running jobs"]["status"] == "failed"
    assert "pods: patch" in found["rights: running jobs"]["message"]


@pytest.mark.only("sandbox")
def test_who_may_do_nothing_is_told_so_and_not_refused(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.deny("*", "*")
    found = checks(engine, ends=6)
    assert found["reach"]["status"] == "OK"
    assert found["rights: running jobs"]["status"] == "failed"
    assert "not looked at" in found["quota"]["message"]


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
    assert (found["check"], found["status"]) == ("reach", "failed")
    assert url in found["message"]
    assert f"waiting for {url}: no answer for 2s" in run.lines
    gone = engine.run("doctor", ends=6)
    assert "Connection refused" in gone.stdout
    engine.kubeconfig.write_text(text.replace(address, "https://no-such-host.invalid:6443"))
    unknown = engine.run("doctor", ends=6)
    (row,) = [line for line in unknown.stdout.splitlines() if line.startswith("failed")]
    assert "https://no-such-host.invalid:6443: no answer from the API server" in row
    missing = engine.run("doctor", "--context", "nope", ends=6)
    assert missing.stdout.splitlines()[1].startswith("failed")


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
    assert {name for name, entry in found.items() if entry["status"] != "OK"} == {"version"}
    assert "1.28, older than 1.30" in found["version"]["message"]
    (row,) = [line for line in told.stdout.splitlines() if line.startswith("failed")]
    assert "upgrade the cluster, or use another context" in row
