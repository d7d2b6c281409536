"""The last few failed pods of each job, which somebody may want to look into."""

from collections.abc import Iterable
from heapq import heappush, heappushpop

from engine.cluster.api import Metadata
from engine.refs import JobKey
from engine.wellknown import JOB


def newest_failed(failed: Iterable[Metadata], count: int) -> frozenset[str]:
    """UIDs of the `count` newest of each job; in memory are no more than those."""
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
