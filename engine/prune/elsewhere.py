"""Pods of a source in namespaces that none of its specs names any more."""

from collections.abc import Collection
from functools import partial
from typing import Any

from engine.cluster.api import PODS, list_pages
from engine.cluster.client import Client
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
    terms = [f"metadata.namespace!={name}" for name in sorted(namespaces)[:_MOST_TERMS]]
    retry = partial(retry_transient, tries=TRIES)
    try:
        pages = list(
            list_pages(client, PODS.path(""), selector, fields=",".join(terms), retry=retry)
        )
    except ForbiddenError:
        return []
    found = [pod for page in pages for pod in page["items"]]
    return [pod for pod in found if pod["metadata"]["namespace"] not in namespaces]
