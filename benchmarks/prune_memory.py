"""Peak memory of `engine prune` against the number of objects, a tenth of them expired.

On the sandbox: how many objects an API server holds has nothing to do with who made it.
"""

import json
import time
from collections.abc import Iterator

from benchmarks.bare import in_threads
from benchmarks.figures import Bench, Figure
from benchmarks.place import SANDBOX, sandbox
from benchmarks.process import engine
from engine.wellknown import TTL

NAME = "prune-memory"
_EXPIRED = 10
"""Each tenth object."""


def measure(bench: Bench) -> Iterator[Figure]:
    sizes = (100, 300, 1000) if bench.quick else (3000, 10_000, 30_000)
    peaks = {}
    for size in sizes:
        peaks[size] = _peak(size)
        words = f"engine prune over {size:,} objects: peak"
        where = SANDBOX
        yield Figure(f"prune-memory-{size}", words, "MiB", [peaks[size]], size=size, where=where)
    first, *_, last = sizes
    words = f"peak of engine prune over {last:,} objects by that over {first:,}"
    yield Figure("prune-memory-growth", words, "x", [peaks[last] / peaks[first]], where=SANDBOX)


def _peak(size: int) -> float:
    with sandbox() as place:

        def create(number: int) -> None:
            ttl = "1" if number % _EXPIRED == 0 else "86400"
            body = {"metadata": {"name": f"c-{number}", "annotations": {TTL: ttl}}}
            place.bare.write("POST", "/api/v1/namespaces/default/configmaps", body)

        in_threads(create, range(size))
        time.sleep(2.5)
        done = engine("prune", "-n", "default", "-o", "json", environment=place.environment)
    deleted = sum(entry["action"] == "deleted" for entry in json.loads(done.out)["pruned"])
    assert deleted == size // _EXPIRED, deleted
    return done.peak
