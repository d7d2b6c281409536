"""Find the kinds that somebody names, with no more requests than those kinds need."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from engine.cluster.api import CONFIG_MAPS, PODS, SECRETS, Resource
from engine.cluster.client import Client
from engine.errors import NotFoundError, UsageError

_KNOWN = {resource.plural: resource for resource in (PODS, SECRETS, CONFIG_MAPS)}


def find_resources(client: Client, names: Iterable[str]) -> tuple[Resource, ...]:
    """Resources for names as kubectl takes them: `pods`, `deployments.apps`, `widgets.v1.a.org`.

    Guarantees: pods, secrets and configmaps cost no request, any other core kind one, a kind of a
    group two. Errors: UsageError for a kind that the server doesn't have or can't list and delete.
    """
    documents: dict[str, dict[str, Any]] = {}
    found = [_KNOWN.get(name) or _discover(client, name, documents) for name in names]
    return tuple(dict.fromkeys(found))


def _discover(client: Client, name: str, documents: dict[str, dict[str, Any]]) -> Resource:
    plural, _, group = name.lower().partition(".")
    if not group:
        version = "v1"
    else:
        first, _, rest = group.partition(".")
        answer = _read(client, f"/apis/{quote(group, safe='')}", documents)
        if answer is None and rest:
            answer = _read(client, f"/apis/{quote(rest, safe='')}", documents)
            version = f"{quote(rest, safe='')}/{quote(first, safe='')}"
        elif answer is not None:
            version = answer["preferredVersion"]["groupVersion"]
        if answer is None:
            raise UsageError(f"the server has no API group {group}", where=name)
    path = f"/apis/{version}" if "/" in version else f"/api/{version}"
    listed = _read(client, path, documents)
    entries = listed["resources"] if listed else ()
    entry = next((e for e in entries if _is_called(e, plural)), None)
    if entry is None:
        hint = "" if group else "name a kind with its group, such as deployments.apps"
        raise UsageError(f"the server has no {plural} in {version}", where=name, hint=hint)
    if not {"list", "delete"} <= set(entry["verbs"]):
        raise UsageError("objects of this kind can't be listed and deleted", where=name)
    return Resource(entry["kind"], entry["name"], version, entry["namespaced"])


def _is_called(entry: dict[str, Any], name: str) -> bool:
    names = (entry["name"], entry.get("singularName"), entry["kind"].lower())
    return "/" not in entry["name"] and (name in names or name in entry.get("shortNames", ()))


def _read(client: Client, path: str, documents: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    if path not in documents:
        try:
            documents[path] = client.request("GET", path)
        except NotFoundError:
            return None
    return documents[path]
