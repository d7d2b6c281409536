"""The last few failed pods of each job, which somebody may want to look into."""

from heapq import heappush, heappushpop

from engine.cluster.client import Client
from engine.cluster.metadata import PODS
from engine.controller.prune.pages import pages
from engine.labels import JOB, MANAGED_BY, MANAGER
from engine.refs import JobKey


def last_failed(client: Client, namespace: str, count: int) -> frozenset[str]:
    """UIDs of the `count` youngest failed pods of every job. Errors: those of the API."""
    if count <= 0:
        return frozenset()
    youngest: dict[JobKey, list[tuple[str, str]]] = {}
    selector = f"{MANAGED_BY}={MANAGER},{JOB}"
    for page in pages(client, PODS, namespace, selector, "status.phase=Failed"):
        for metadata in page:
            heap = youngest.setdefault(JobKey(metadata["namespace"], metadata["labels"][JOB]), [])
            entry = (metadata["creationTimestamp"], metadata["uid"])
            if len(heap) < count:
                heappush(heap, entry)
            else:
                heappushpop(heap, entry)
    return frozenset(uid for heap in youngest.values() for _, uid in heap)
