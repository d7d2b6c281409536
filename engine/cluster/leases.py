"""Leases of coordination.k8s.io/v1: read one, and write it by compare-and-swap."""

from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import ConflictError, NotFoundError
from engine.refs import Ref
from engine.wellknown import MANAGED_BY, MANAGER


def read_lease(
    client: Client, namespace: str, name: str, *, timeout: float
) -> dict[str, Any] | None:
    """The Lease, or None if it isn't there. Errors: UnreachableError after `timeout` seconds."""
    return api.get(client, Ref("Lease", namespace, name), timeout=timeout)


def list_leases(client: Client, namespace: str) -> list[dict[str, Any]]:
    """Leases of engines, in a namespace or ("") in all of them. Errors: those of a list."""
    pages = api.list_all(client, api.LEASES.path(namespace), f"{MANAGED_BY}={MANAGER}")
    return [lease for page in pages for lease in page["items"]]


def write_lease(client: Client, lease: dict[str, Any], *, timeout: float) -> dict[str, Any]:
    """The Lease as the server has it now: updated if it has a version, else created.

    Errors: ConflictError when it has been changed or deleted since it was read, AlreadyExistsError
    when it has been made since; NotFoundError when its namespace isn't there, UnreachableError
    after `timeout` seconds.
    """
    if not lease["metadata"].get("resourceVersion"):
        return api.create(client, lease, timeout=timeout)
    try:
        return api.update(client, lease, timeout=timeout)
    except NotFoundError as error:
        raise ConflictError(error.cause, status=error.status, reason=error.reason) from None
