"""The verbs on objects: get, list by the page, create, update, patch, delete, and a pod's log.

Objects of the engine's own kinds are named by their `Ref` alone; for any other kind `resource` says
where the API serves it. What decides over an object's end needs no more than its metadata, a third
of the bytes: `accept` METADATA and METADATA_LIST ask for that.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from engine.api import versions
from engine.api.versions import API_VERSION, JOB_SPEC
from engine.cluster.client import JSON, READ_TIMEOUT, Client, Keep, Query
from engine.errors import ExpiredError, NotFoundError, OwnershipError, UsageError
from engine.lifecycle.ownership import Proof
from engine.refs import Ref, ref_of

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE_SIZE = 500
_WRITE_OPTIONS: Query = [("fieldManager", "engine"), ("fieldValidation", "Strict")]
"""Strict: a field that the server doesn't know is refused instead of dropped in silence."""
_LIST_TRIES = 3

Metadata = dict[str, Any]
Answer = dict[str, Any]


class Resource(Struct, frozen=True):
    """One kind of objects, and where the API serves it."""

    kind: str
    plural: str
    api_version: str = "v1"
    namespaced: bool = True

    def path(self, namespace: str, name: str = "") -> str:
        """Path of an object, or of all of them; "" for the namespace means all namespaces."""
        root = "/apis" if "/" in self.api_version else "/api"
        place = f"/namespaces/{_segment(namespace)}" if namespace and self.namespaced else ""
        below = f"/{_segment(name)}" if name else ""
        return f"{root}/{self.api_version}{place}/{self.plural}{below}"

    def ref(self, metadata: Mapping[str, Any]) -> Ref:
        """The object of this kind that the metadata is of."""
        return Ref(self.kind, metadata.get("namespace", ""), metadata["name"])


PODS = Resource("Pod", "pods")
SECRETS = Resource("Secret", "secrets")
CONFIG_MAPS = Resource("ConfigMap", "configmaps")
EVENTS = Resource("Event", "events")
RESOURCE_QUOTAS = Resource("ResourceQuota", "resourcequotas")
NAMESPACES = Resource("Namespace", "namespaces", namespaced=False)
NODES = Resource("Node", "nodes", namespaced=False)
DISRUPTION_BUDGETS = Resource("PodDisruptionBudget", "poddisruptionbudgets", "policy/v1")
JOB_SPECS = Resource(JOB_SPEC, "jobspecs", API_VERSION)
JOB_DEFAULTS = Resource(versions.JOB_DEFAULTS, "jobdefaults", API_VERSION)
LEASES = Resource("Lease", "leases", "coordination.k8s.io/v1")

OWN = {
    resource.kind: resource
    for resource in (
        PODS,
        SECRETS,
        CONFIG_MAPS,
        EVENTS,
        RESOURCE_QUOTAS,
        NAMESPACES,
        LEASES,
        JOB_SPECS,
    )
}


def get(
    client: Client,
    ref: Ref,
    resource: Resource | None = None,
    *,
    accept: str = JSON,
    timeout: float | None = None,
) -> Answer | None:
    """The object, or None if it isn't there."""
    try:
        return _request(client, "GET", _path(ref, resource), accept=accept, timeout=timeout)
    except NotFoundError:
        return None


def get_metadata(client: Client, ref: Ref, resource: Resource | None = None) -> Metadata | None:
    """The object's metadata, or None if it isn't there."""
    found = get(client, ref, resource, accept=METADATA)
    return None if found is None else found["metadata"]


def create(
    client: Client,
    manifest: dict[str, Any],
    *,
    dry_run: bool = False,
    timeout: float | None = None,
) -> Answer:
    """The object as the server made it. A repeated create meets AlreadyExistsError."""
    path = OWN[manifest["kind"]].path(manifest["metadata"]["namespace"])
    query = [*_WRITE_OPTIONS, *([("dryRun", "All")] if dry_run else [])]
    return _request(client, "POST", path, body=manifest, query=query, timeout=timeout)


def update(
    client: Client,
    manifest: dict[str, Any],
    subresource: str = "",
    *,
    timeout: float | None = None,
) -> Answer:
    """Write the whole object, or no more than a `subresource` such as `/status`.

    Its resourceVersion makes it a compare-and-swap (ConflictError).
    """
    path = _path(ref_of(manifest), None) + subresource
    return _request(client, "PUT", path, body=manifest, query=_WRITE_OPTIONS, timeout=timeout)


def patch(client: Client, ref: Ref, change: list[dict[str, Any]] | dict[str, Any]) -> Answer:
    """Apply a JSON patch, a list, or a merge patch, all of it or nothing.

    A merge patch with a `metadata.uid` is refused by any other object than that one.
    """
    return _request(client, "PATCH", _path(ref, None), body=change, query=_WRITE_OPTIONS)


def delete(
    client: Client,
    resource: Resource,
    metadata: Mapping[str, Any],
    proof: Proof,
    *,
    grace: int | None = None,
    dry_run: bool = False,
) -> Metadata | None:
    """Delete the object with this UID, in this version if there is one, and its dependents later.

    The only function that deletes. Returns the metadata while the object is being deleted, {} once
    it is gone, None if it didn't exist.
    Errors: OwnershipError where `proof` doesn't cover the object, ConflictError when another object
    has taken its name, or the version is not its own.
    """
    path = _path(resource.ref(metadata), resource)
    if not proof.covers(resource.kind, metadata):
        raise OwnershipError(f"{resource.ref(metadata)} is labelled, not ours")
    preconditions = {k: metadata[k] for k in ("uid", "resourceVersion") if metadata.get(k)}
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    options |= {"preconditions": preconditions, "propagationPolicy": "Background"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if dry_run:
        options["dryRun"] = ["All"]
    try:
        answer = client.request("DELETE", path, body=options)
    except NotFoundError:
        return None
    return {} if answer.get("kind") == "Status" else answer.get("metadata") or {}


def list_pages(
    client: Client,
    path: str,
    selector: str = "",
    *,
    fields: str = "",
    size: int = PAGE_SIZE,
    accept: str = JSON,
    keep: Keep | None = None,
    retry: Callable[[Callable[[], Answer]], Answer] = operator.call,
) -> Iterator[Answer]:
    """Pages of a list, each as the server sent it; `retry` asks for one of them.

    Errors: ExpiredError once the server has forgotten the list half-way.
    """
    token = ""
    while True:
        given = {"labelSelector": selector, "fieldSelector": fields, "continue": token}
        query: Query = [("limit", str(size)), *filter(itemgetter(1), given.items())]
        answer = retry(partial(list_page, client, path, query, accept=accept, keep=keep))
        yield answer
        token = answer["metadata"].get("continue") or ""
        if not token:
            return


def list_page(
    client: Client,
    path: str,
    query: Query,
    *,
    accept: str = JSON,
    timeout: float | None = None,
    keep: Keep | None = None,
) -> Answer:
    """One page, of each item what `keep` makes of it.

    A server writes an empty list of metadata as null; its items are a list here.
    """
    options: dict[str, Any] = {"query": query, "accept": accept, "timeout": timeout}
    answer = _request(client, "GET", path, keep=keep, **options)
    items = answer.get("items") or []
    if not isinstance(items, list):
        raise client.not_an_api("is no list of objects")
    return {**answer, "items": items}


def list_all(
    client: Client, path: str, selector: str, fields: str = "", *, keep: Keep | None = None
) -> list[Answer]:
    """All pages of a list; begun again when the server forgets the list half-way.

    Of each item only what `keep` makes of it is ever held, and nothing where that is None.

    The pages are larger, because all of them are kept: the records of 1,000 jobs come as one.

    Errors: ExpiredError when that happens every time.
    """
    ask = partial(list_pages, client, path, selector, fields=fields, size=3 * PAGE_SIZE, keep=keep)
    for _ in range(_LIST_TRIES - 1):
        with suppress(ExpiredError):
            return list(ask())
    return list(ask())


def read_log(
    client: Client,
    pod: Ref,
    container: str,
    options: Mapping[str, str] | None = None,
    *,
    timeout: float = READ_TIMEOUT,
) -> Iterator[bytes]:
    """A container's log, piece by piece; all of it, unless `options` (PodLogOptions) say otherwise.

    Errors: ApiError where the node has none or doesn't answer within `timeout` seconds.
    """
    wanted = [("container", container), *(options or {}).items()]
    return client.download(f"{_path(pod, None)}/log", wanted, timeout=timeout)


def version_number(version: str) -> int:
    """Versions are opaque by contract, and ordered numbers in every server there is (KEP-5504)."""
    return int(version) if version.isdigit() else 0


def _request(client: Client, method: str, path: str, **options: Any) -> Answer:
    """The object, or the list, that the server answers with: either has metadata.

    Errors: UnreachableError for anything else. Taken for an empty list, it would hide every record.
    """
    answer = client.request(method, path, **options)
    if not isinstance(answer.get("metadata"), dict):
        raise client.not_an_api("is no object of the API")
    return answer


def _path(ref: Ref, resource: Resource | None) -> str:
    """Path of one object. Errors: UsageError without a name, which would be all objects' path."""
    if not ref.name:
        raise UsageError("an object has a name", where=str(ref))
    return (resource or OWN[ref.kind]).path(ref.namespace, ref.name)


def _segment(name: str) -> str:
    """A name as one segment of a path, whatever it holds. Errors: UsageError for one of dots."""
    if name in (".", ".."):
        raise UsageError("nothing can be called so", where=name)
    return quote(name, safe="")
