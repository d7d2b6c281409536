"""What every namespace gets by itself: a service account and the cluster's root certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import kinds

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

DEFAULT_ACCOUNT = "default"
ROOT_CERTIFICATE = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)
_DATA = {"ca.crt": "# none: the sandbox speaks plain HTTP\n"}


def furnish(context: Context, namespace: str) -> None:
    """Make what is missing; the content of the certificate's ConfigMap is set right as well."""
    with context.storage.lock:
        holder = context.storage.get(kinds.NAMESPACES, "", namespace)
        if holder is None or holder.obj["metadata"].get("deletionTimestamp"):
            return
        if context.storage.get(kinds.SERVICE_ACCOUNTS, namespace, DEFAULT_ACCOUNT) is None:
            account = _new(context, kinds.SERVICE_ACCOUNTS, namespace, DEFAULT_ACCOUNT)
            context.storage.put(kinds.SERVICE_ACCOUNTS, account)
        held = context.storage.get(kinds.CONFIGMAPS, namespace, ROOT_CERTIFICATE)
        if held is None:
            made = _new(context, kinds.CONFIGMAPS, namespace, ROOT_CERTIFICATE)
            made["metadata"]["annotations"] = {"kubernetes.io/description": _DESCRIPTION}
            context.storage.put(kinds.CONFIGMAPS, {**made, "data": dict(_DATA)})
        elif is_spoilt(held):
            context.storage.put(kinds.CONFIGMAPS, {**held.thaw(), "data": dict(_DATA)})
        context.quotas.flush()


def is_spoilt(config: Entry) -> bool:
    """Whether its data differs from what the control plane writes."""
    return config.name == ROOT_CERTIFICATE and config.obj.get("data") != _DATA


def _new(context: Context, kind: Kind, namespace: str, name: str) -> Obj:
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": context.new_uid(),
        "creationTimestamp": context.clock.stamp(),
    }
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
