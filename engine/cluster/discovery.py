"""What an API server is and offers: its version, its kinds, and what we may do there."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from engine.api.model import Job
from engine.cluster.api import CONFIG_MAPS, PODS, SECRETS, Resource, get
from engine.cluster.client import Client
from engine.errors import (
    ClusterError,
    Diagnostic,
    EngineError,
    ForbiddenError,
    NotFoundError,
    UsageError,
)
from engine.refs import Ref

OLDEST_SERVER = (1, 30)
"""The first release that always has scheduling gates and native sidecars, and is tested."""
REVIEWS = "/apis/authorization.k8s.io/v1"
TIMEOUT = 5.0
"""Seconds for the answer to a review."""


def check_server_version(client: Client) -> None:
    """Refuse a server that is too old; one request, to be made before any other.

    Errors: ClusterError for an older server, or one without a version; those of a
    request.
    """
    version = server_version(client.request("GET", "/version"))
    if version is None:
        raise client.not_an_api("says no version")
    if version < OLDEST_SERVER:
        oldest = "{}.{}".format(*OLDEST_SERVER)
        words = "the server is Kubernetes {}.{}".format(*version)
        words += f", older than {oldest}, the oldest supported version"
        hint = "upgrade the cluster, or use another context"
        raise ClusterError(words, where=client.server, hint=hint)


def server_version(answer: Mapping[str, Any]) -> tuple[int, int] | None:
    """(major, minor) in an answer of /version; providers write minors such as `30+`."""
    found = re.match(r"(\d+)\.(\d+)", f"{answer.get('major')}.{answer.get('minor')}")
    return (int(found[1]), int(found[2])) if found else None


def missing_namespaces(client: Client, jobs: Iterable[Job]) -> list[Diagnostic]:
    """A problem for each namespace that doesn't exist, at the place of the first job that is in it.

    A namespace that may not be read is left to the first create. Errors: those of a request.
    """
    problems = []
    firsts: dict[str, Job] = {}
    for job in jobs:
        firsts.setdefault(job.namespace, job)
    for namespace, job in firsts.items():
        try:
            if get(client, Ref("Namespace", "", namespace)) is not None:
                continue
        except ForbiddenError:
            continue
        other = "change metadata.namespace" if job.names_namespace else "choose another with -n"
        words = f"there is no namespace {namespace} in the cluster"
        hint = f"kubectl create namespace {namespace}, or {other}"
        problems.append(Diagnostic(job.place, words, hint))
    return problems


def is_allowed(client: Client, namespace: str, verb: str, kind: str) -> bool:
    """Whether we may do that with a kind in a namespace, or ("") in all of them.

    A kind is its plural, with a subresource, and its group behind a dot.
    Errors: those of the API; a server may refuse the question itself.
    """
    name, _, group = kind.partition(".")
    resource, _, subresource = name.partition("/")
    attributes = {"namespace": namespace, "verb": verb, "group": group,
                  "resource": resource, "subresource": subresource}  # fmt: skip
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    path = f"{REVIEWS}/selfsubjectaccessreviews"
    answer = client.request("POST", path, body=body, timeout=TIMEOUT)
    return bool((answer.get("status") or {}).get("allowed"))


def may_list(client: Client, resource: Resource, namespace: str = "") -> bool:
    """Whether we may list a kind there, or ("") in all namespaces; True where that is unknown.

    Asked beforehand, because a refused list is an entry in the server's audit log.
    """
    group = resource.api_version.rpartition("/")[0]
    try:
        return is_allowed(client, namespace, "list", f"{resource.plural}.{group}")
    except EngineError:
        return True


def find_resources(client: Client, names: Iterable[str]) -> tuple[Resource, ...]:
    """Resources by their plural names and groups: `pods`, `deployments.apps`.

    Guarantees: pods, secrets and configmaps cost no request, any other core kind one, a kind of a
    group two. Errors: UsageError for a kind that the server doesn't have or can't list and delete.
    """
    known = {resource.plural: resource for resource in (PODS, SECRETS, CONFIG_MAPS)}
    read = cache(partial(_read, client))
    return tuple(dict.fromkeys(known.get(name) or _discover(read, name) for name in names))


def _discover(read: Callable[[str], dict[str, Any]], name: str) -> Resource:
    plural, _, group = name.lower().partition(".")
    path, version = "/api/v1", "v1"
    if group:
        found = read(f"/apis/{quote(group, safe='')}").get("preferredVersion")
        if found is None:
            raise UsageError(f"the server has no API group {group}", where=name)
        version = found["groupVersion"]
        path = f"/apis/{version}"
    entry = next((e for e in read(path).get("resources", ()) if e["name"] == plural), None)
    if entry is None:
        hint = "name a kind by its plural, and with its group, such as deployments.apps"
        raise UsageError(f"the server has no {plural} in {version}", where=name, hint=hint)
    if not {"list", "delete"} <= set(entry["verbs"]):
        raise UsageError("objects of this kind can't be listed and deleted", where=name)
    return Resource(entry["kind"], entry["name"], version, entry["namespaced"])


def _read(client: Client, path: str) -> dict[str, Any]:
    """{} for what isn't there."""
    try:
        return client.request("GET", path)
    except NotFoundError:
        return {}
