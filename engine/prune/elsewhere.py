"""Pods and records of a source in namespaces that none of its specs names any more."""

from collections.abc import Collection
from functools import partial
from typing import Any

from engine.cluster.api import PODS, list_pages
from engine.cluster.client import Client
from engine.cluster.records import list_records
from engine.decide.record import Record
from engine.errors import ForbiddenError
from engine.runtime.retry import TRIES, retry_transient
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

_MOST_TERMS = 50


def pods_elsewhere(
    client: Client, source: str, namespaces: Collection[str]
) -> list[dict[str, Any]]:
    """The source's pods outside of `namespaces`; none without the right to list pods everywhere.

    Errors: those of the list, once it has failed several times.
    """
    selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={source}"
    retry = partial(retry_transient, tries=TRIES)
    path, fields = PODS.path(""), _outside(namespaces)
    try:
        pages = list(list_pages(client, path, selector, fields=fields, retry=retry))
    except ForbiddenError:
        return []
    found = [pod for page in pages for pod in page["items"]]
    return [pod for pod in found if pod["metadata"]["namespace"] not in namespaces]


def records_elsewhere(client: Client, source: str, namespaces: Collection[str]) -> list[Record]:
    """The same of its records, as far as they can be read; it takes the right to list ConfigMaps.

    Errors: those of the list, once it has failed several times.
    """
    selector, fields = f"{SOURCE}={source}", _outside(namespaces)
    try:
        listed = retry_transient(lambda: list_records(client, "", selector, fields), tries=TRIES)
    except ForbiddenError:
        return []
    return [r for key, r in sorted(listed.items.items()) if key.namespace not in namespaces]


def _outside(namespaces: Collection[str]) -> str:
    return ",".join(f"metadata.namespace!={name}" for name in sorted(namespaces)[:_MOST_TERMS])
