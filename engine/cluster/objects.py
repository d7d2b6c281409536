"""The verbs that the engine uses, on the kinds that it uses."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from engine.cluster.client import JSON_PATCH, Client
from engine.cluster.transport import JSON, Query
from engine.errors import ExpiredError, NotFoundError
from engine.refs import Ref

PAGE = 500
WRITE_OPTIONS: Query = [("fieldManager", "engine"), ("fieldValidation", "Strict")]
"""Strict: a field that the server doesn't know is refused instead of dropped in silence."""
_LIST_TRIES = 3

_PLURALS = {
    "Pod": "pods",
    "Secret": "secrets",
    "ConfigMap": "configmaps",
    "Event": "events",
    "ResourceQuota": "resourcequotas",
}


def collection_path(kind: str, namespace: str) -> str:
    """Path of all objects of a kind; "" for the namespace means all namespaces."""
    return (
        f"/api/v1/namespaces/{namespace}/{_PLURALS[kind]}"
        if namespace
        else f"/api/v1/{_PLURALS[kind]}"
    )


def object_path(ref: Ref) -> str:
    return f"{collection_path(ref.kind, ref.namespace)}/{ref.name}"


def create(client: Client, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
    """The object as the server made it. A repeated create meets AlreadyExistsError."""
    path = collection_path(manifest["kind"], manifest["metadata"]["namespace"])
    return client.request("POST", path, body=manifest, query=_options(dry_run=dry_run))


def replace(client: Client, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write the whole object; its resourceVersion makes it a compare-and-swap (ConflictError)."""
    metadata = manifest["metadata"]
    ref = Ref(manifest["kind"], metadata["namespace"], metadata["name"])
    return client.request("PUT", object_path(ref), body=manifest, query=_options())


def get(client: Client, ref: Ref, *, accept: str = JSON) -> dict[str, Any] | None:
    """The object, or None if it isn't there."""
    try:
        return client.request("GET", object_path(ref), accept=accept)
    except NotFoundError:
        return None


def patch(client: Client, ref: Ref, operations: list[dict[str, Any]]) -> dict[str, Any]:
    """Apply a JSON patch, all of it or nothing."""
    return client.request(
        "PATCH", object_path(ref), body=operations, content_type=JSON_PATCH, query=_options()
    )


def delete(
    client: Client, ref: Ref, *, uid: str, grace: int | None = None, version: str = ""
) -> bool:
    """Delete the object with this UID; False if it was gone already.

    Errors: ConflictError when another object has taken its name, or `version` is not its own.
    """
    preconditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": preconditions,
        "propagationPolicy": "Background",
    }
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    try:
        client.request("DELETE", object_path(ref), body=options)
    except NotFoundError:
        return False
    return True


def list_pages(
    client: Client,
    path: str,
    selector: str,
    *,
    page: int = PAGE,
    accept: str = JSON,
    fields: str = "",
) -> Iterator[dict[str, Any]]:
    """Pages of a list, each as the server sent it; a token that expires is ExpiredError."""
    token = ""
    while True:
        query: Query = [("labelSelector", selector), ("limit", str(page))]
        if fields:
            query.append(("fieldSelector", fields))
        if token:
            query.append(("continue", token))
        answer = client.request("GET", path, query=query, accept=accept)
        yield answer
        token = answer["metadata"].get("continue", "")
        if not token:
            return


def list_whole(client: Client, path: str, selector: str) -> list[dict[str, Any]]:
    """All pages of a list; begun again when the server forgets the list half-way.

    Errors: ExpiredError when that happens every time.
    """
    for _ in range(_LIST_TRIES - 1):
        with suppress(ExpiredError):
            return list(list_pages(client, path, selector))
    return list(list_pages(client, path, selector))


def version_number(version: str) -> int:
    """Versions are opaque by contract, and ordered numbers in every server there is (KEP-5504)."""
    return int(version) if version.isdigit() else 0


def namespace_exists(client: Client, namespace: str) -> bool:
    try:
        client.request("GET", f"/api/v1/namespaces/{namespace}")
    except NotFoundError:
        return False
    return True


def _options(*, dry_run: bool = False) -> Query:
    return [*WRITE_OPTIONS, *([("dryRun", "All")] if dry_run else [])]
