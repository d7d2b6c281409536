"""deploy/cleaner.yaml: the server takes it, and its rights suffice."""

import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.cluster.cluster import Cluster
from tests.support.api import Api
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = pytest.mark.only("real")

CLEANER = Path(__file__).parents[2] / "deploy" / "cleaner.yaml"
RESOURCES = {
    "NetworkPolicy": "networkpolicies",
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "CronJob": "cronjobs",
}


def apply(api: Api, namespace: str) -> None:
    """All of it, in the test's namespace instead of `ci`."""
    text = CLEANER.read_text().replace("namespace: ci\n", f"namespace: {namespace}\n")
    found = list(YAML(typ="safe", pure=True).load_all(text))
    assert [document["kind"] for document in found] == list(RESOURCES)
    for document in found:
        group, plural = document["apiVersion"], RESOURCES[document["kind"]]
        api.create(plural if group == "v1" else f"{group}/{plural}", document, namespace)


def as_account(api: Api, cluster: Cluster, namespace: str) -> Path:
    """Somebody with the rights of the service account: a certificate can't hold its long name."""
    user = f"prune-{namespace[-8:]}"
    rbac = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "ci:engine-cleaner"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
    }
    api.create(f"{rbac}/v1/rolebindings", binding, namespace)
    return cluster.kubeconfig_for(user)


def test_its_rights_suffice_for_all_that_prune_does(
    engine: Engine, objects: Objects, api: Api, cluster: Cluster
) -> None:
    apply(api, objects.namespace)
    engine.spec("job", script="echo done", secrets={"A": {"value": "anything"}})
    engine.reconcile("--wait", "applied", ends=0)
    api.wait(lambda: objects.pod("job")["status"]["phase"] == "Succeeded", "end of the pod")
    annotations = {"jobs.engine/ttl": "0"}
    for resource in ("secrets", "configmaps"):
        body = {"metadata": {"name": "expired", "annotations": annotations}}
        api.create(resource, body, objects.namespace)
    name = objects.pod("job")["metadata"]["name"]
    api.patch("pods", name, {"metadata": {"annotations": annotations}}, objects.namespace)
    time.sleep(2.1)
    admin = engine.kubeconfig
    engine.kubeconfig = as_account(api, cluster, objects.namespace)
    run = engine.run("prune", "-n", objects.namespace, "-o", "json")
    assert run.code == 0, run.stdout + run.stderr
    gone = sorted(e["kind"] for e in run.result["pruned"] if e["action"] == "deleted")
    assert gone == ["ConfigMap", "Pod", "Secret"]
    engine.kubeconfig = admin
    assert engine.status()["job"]["state"] == "Succeeded"


@pytest.mark.parametrize("mode", ["-A", "default"])
def test_its_rights_end_at_the_namespace(
    engine: Engine, objects: Objects, api: Api, cluster: Cluster, mode: str
) -> None:
    apply(api, objects.namespace)
    engine.kubeconfig = as_account(api, cluster, objects.namespace)
    where = ["-A"] if mode == "-A" else ["-n", mode]
    run = engine.run("prune", *where, "-o", "json", ends=6)
    assert len(run.result["errors"]) == 3
    assert all("forbidden: " in error for error in run.result["errors"])
