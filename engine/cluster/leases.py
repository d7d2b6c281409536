"""Leases of coordination.k8s.io/v1: read one, and write it by compare-and-swap."""

from typing import Any

from engine.cluster.client import Client
from engine.cluster.objects import WRITE_OPTIONS
from engine.errors import ConflictError, NotFoundError


def read_lease(client: Client, namespace: str, name: str) -> dict[str, Any] | None:
    """The Lease, or None if it isn't there."""
    try:
        return client.request("GET", _path(namespace, name))
    except NotFoundError:
        return None


def write_lease(client: Client, lease: dict[str, Any]) -> dict[str, Any]:
    """The Lease as the server has it now: replaced if it has a version, else created.

    Errors: ConflictError when it has been changed or deleted since it was read, AlreadyExistsError
    when it has been made since; NotFoundError when its namespace isn't there.
    """
    metadata = lease["metadata"]
    if not metadata.get("resourceVersion"):
        path = _path(metadata["namespace"])
        return client.request("POST", path, body=lease, query=WRITE_OPTIONS)
    path = _path(metadata["namespace"], metadata["name"])
    try:
        return client.request("PUT", path, body=lease, query=WRITE_OPTIONS)
    except NotFoundError as error:
        raise ConflictError(error.cause, status=error.status, reason=error.reason) from None


def _path(namespace: str, name: str = "") -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return f"{path}/{name}" if name else path
