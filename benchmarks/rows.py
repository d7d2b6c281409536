"""All measurements, in the order in which they run."""

from collections.abc import Callable, Iterator, Mapping

from benchmarks import (
    burst,
    idle,
    latency,
    objects,
    one_file,
    one_spec,
    peers_table,
    pipeline,
    prune,
    prune_memory,
    sharing,
    start_jobs,
    start_up,
    status,
    unchanged,
    validate,
)
from benchmarks.figures import Bench, Figure

ROWS: Mapping[str, Callable[[Bench], Iterator[Figure]]] = {
    module.NAME: module.measure
    for module in (
        start_jobs,
        one_spec,
        unchanged,
        latency,
        objects,
        burst,
        sharing,
        idle,
        prune,
        prune_memory,
        validate,
        one_file,
        status,
        start_up,
        pipeline,
        peers_table,
    )
}
