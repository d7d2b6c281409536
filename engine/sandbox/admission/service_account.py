"""The ServiceAccount admission: the account that a Pod runs as, and the token that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import errors, kinds
from engine.sandbox.admission.names import generated
from engine.sandbox.furnishing import DEFAULT_ACCOUNT, ROOT_CERTIFICATE, furnish

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path, no secret
_VOLUME = "kube-api-access-"
_EXPIRATION = 3607
_MODE = 420


def admit_account(context: Context, pod: Obj) -> None:
    """Give a Pod its account, the token's volume and the account's pull secrets.

    Errors: 403 no such account; for the default one the server waits until it has been made.
    """
    spec, meta = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName") or DEFAULT_ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = _find(context, meta["namespace"], name)
    if account is None:
        words = (
            f"error looking up service account {meta['namespace']}/{name}: "
            f'serviceaccount "{name}" not found'
        )
        raise errors.forbidden("", "pods", meta.get("name", ""), words)
    mounts = spec.get("automountServiceAccountToken")
    if mounts is None:
        mounts = account.obj.get("automountServiceAccountToken", True)
    if mounts:
        _mount_token(context, spec)
    if not spec.get("imagePullSecrets") and account.obj.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(one) for one in account.obj["imagePullSecrets"]]


def _find(context: Context, namespace: str, name: str) -> Entry | None:
    found = context.storage.get(kinds.SERVICE_ACCOUNTS, namespace, name)
    if found is None and name == DEFAULT_ACCOUNT:
        furnish(context, namespace)
        found = context.storage.get(kinds.SERVICE_ACCOUNTS, namespace, name)
    return found


def _mount_token(context: Context, spec: Obj) -> None:
    """A container that has a mount at the token's path keeps its own."""
    volumes = spec.get("volumes", [])
    held = next((v["name"] for v in volumes if v.get("name", "").startswith(_VOLUME)), "")
    name = held or generated(_VOLUME, context.chance)
    mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
    needed = False
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        mounts = container.get("volumeMounts", [])
        if all(one.get("mountPath") != TOKEN_PATH for one in mounts):
            container["volumeMounts"] = [*mounts, dict(mount)]
            needed = True
    if needed and not held:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> Obj:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    key = {"key": "ca.crt", "path": "ca.crt"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _EXPIRATION, "path": "token"}},
            {"configMap": {"name": ROOT_CERTIFICATE, "items": [key]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": _MODE,
    }
