"""The last few failed pods of each job, which somebody may want to look into."""

from collections.abc import Iterable
from heapq import heappush, heappushpop

from engine.cluster.api import PODS, Metadata
from engine.cluster.client import Client
from engine.prune.pages import pages
from engine.refs import JobKey
from engine.wellknown import JOB, MANAGED_BY, MANAGER


def last_failed(client: Client, namespace: str, count: int) -> frozenset[str]:
    """UIDs of the `count` youngest failed pods of every job. Errors: those of the API."""
    if count <= 0:
        return frozenset()
    selector = f"{MANAGED_BY}={MANAGER},{JOB}"
    listed = pages(client, PODS, namespace, selector, "status.phase=Failed")
    return youngest((metadata for page in listed for metadata in page), count)


def youngest(failed: Iterable[Metadata], count: int) -> frozenset[str]:
    """UIDs of the `count` youngest of each job; in memory are no more than those."""
    if count <= 0:
        return frozenset()
    heaps: dict[JobKey, list[tuple[str, str]]] = {}
    for metadata in failed:
        key = JobKey(metadata["namespace"], metadata["labels"][JOB])
        heap = heaps.setdefault(key, [])
        entry = (metadata["creationTimestamp"], metadata["uid"])
        if len(heap) < count:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)
    return frozenset(uid for heap in heaps.values() for _, uid in heap)
