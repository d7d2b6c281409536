"""Which pods need no more from their record, without keeping the records."""

import json
from collections.abc import Iterator

from engine.cluster import objects
from engine.cluster.client import Client
from engine.cluster.records import KEY, SELECTOR


def closed_pod_uids(client: Client, namespace: str) -> Iterator[str]:
    """UIDs of pods whose outcome is in a record of this namespace; broken records are passed over.

    Errors: those of the API.
    """
    path = objects.collection_path("ConfigMap", namespace)
    for page in objects.list_pages(client, path, SELECTOR):
        for item in page["items"]:
            try:
                attempts = json.loads(item["data"][KEY]).get("attempts") or ()
                yield from [a["uid"] for a in attempts if a.get("outcome") and a.get("uid")]
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
