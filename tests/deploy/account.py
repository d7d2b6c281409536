"""A service account with the roles that the chart makes for it, and whoever acts in its name."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.support.api import Api, ApiError, path_of

Object = dict[str, Any]
Right = tuple[str, str]
"""A verb and a resource, with its group and its subresource: `get`, `pods/log`."""

_RBAC = "rbac.authorization.k8s.io/v1"
_KINDS = {
    "ServiceAccount": "serviceaccounts",
    "Role": f"{_RBAC}/roles",
    "RoleBinding": f"{_RBAC}/rolebindings",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
}
_DECISION = "authorization.k8s.io/decision"
"""Of whoever decides about rights: a quota forbids in other words."""
_OPEN_TO_ALL = "authorization.k8s.io"
"""Whoever has logged in may ask what he may do."""


@dataclass(frozen=True, slots=True)
class Account:
    """The one that a rendered chart has, in the cluster."""

    user: str
    kubeconfig: Path
    documents: list[Object]
    cluster: Cluster
    since: int
    """Where the audit log ended before anybody acted in its name."""

    @property
    def granted(self) -> set[Right]:
        return {
            (verb, ".".join(filter(None, (resource, group))))
            for document in self.documents
            for rule in document.get("rules", ())
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def asked(self, *, refused: bool = False) -> set[Right]:
        """What it asked the API server for, or what of that it may not do."""
        return {
            (entry["verb"], _resource(entry["objectRef"]))
            for entry in self.cluster.audit_entries("engine/", self.since)
            if entry["user"].get("username") == self.user
            and entry.get("objectRef", {}).get("apiGroup") != _OPEN_TO_ALL
            and "resource" in entry.get("objectRef", {})
            and (not refused or entry.get("annotations", {}).get(_DECISION) == "forbid")
        }


@contextmanager
def account(cluster: Cluster, api: Api, documents: list[Object], folder: Path) -> Iterator[Account]:
    """The service account and the roles of these documents, while the block runs."""
    made = [document for document in documents if document["kind"] in _KINDS]
    ((name, namespace),) = (
        (one["metadata"]["name"], one["metadata"]["namespace"])
        for one in made
        if one["kind"] == "ServiceAccount"
    )
    try:
        for document in made:
            api.create(_KINDS[document["kind"]], document, document["metadata"].get("namespace"))
        user = f"system:serviceaccount:{namespace}:{name}"
        for document in made:
            if document.get("rules"):
                api.wait(partial(_is_in_force, api, user, document), "role that is in force")
        path = f"{path_of('serviceaccounts', namespace, name)}/token"
        token = api.client.call("POST", path, {"spec": {}}).body["status"]["token"]
        kubeconfig = _kubeconfig(cluster, token, namespace, folder)
        yield Account(user, kubeconfig, made, cluster, cluster.audit_position())
    finally:
        for document in made:
            metadata = document["metadata"]
            with suppress(ApiError):
                api.delete(_KINDS[document["kind"]], metadata["name"], metadata.get("namespace"))


def _is_in_force(api: Api, user: str, role: Object) -> bool:
    """The API server learns of a role and its binding a moment after they are made."""
    rule = role["rules"][0]
    asked = {
        "namespace": role["metadata"].get("namespace", ""),
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": rule["resources"][0],
        "name": rule.get("resourceNames", [""])[0],
    }
    review = {"spec": {"user": user, "resourceAttributes": asked}}
    path = f"/apis/{_OPEN_TO_ALL}/v1/subjectaccessreviews"
    return bool(api.client.call("POST", path, review).body["status"]["allowed"])


def _resource(ref: Object) -> str:
    name = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
    return ".".join(filter(None, (name, ref.get("apiGroup"))))


def _kubeconfig(cluster: Cluster, token: str, namespace: str, folder: Path) -> Path:
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"] = [{"name": "account", "user": {"token": token}}]
    for entry in config["contexts"]:
        entry["context"] |= {"user": "account", "namespace": namespace}
    path = folder / "account.kubeconfig"
    path.write_text(json.dumps(config))
    return path
