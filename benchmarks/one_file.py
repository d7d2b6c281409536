"""`engine validate` of one file of up to 1 MB, in every shape that somebody could give it.

Of each round the slowest shape counts, and of all the one that takes the most memory.
"""

from collections.abc import Iterator

from benchmarks.figures import Bench, Figure
from benchmarks.process import Done, engine
from benchmarks.shapes import SHAPES

NAME = "one-file"
_CODES = (0, 2)


def measure(bench: Bench) -> Iterator[Figure]:
    rounds = [_validate_all(bench) for _ in range(bench.size(3, 1))]
    slowest = [max(done.seconds for done in found.values()) for found in rounds]
    largest = [max(done.peak for done in found.values()) for found in rounds]
    by_time = max(rounds[0], key=lambda name: rounds[0][name].seconds)
    by_peak = max(rounds[0], key=lambda name: rounds[0][name].peak)
    what = f"validate one file of 1 MB, the slowest of {len(SHAPES)} shapes ({by_time})"
    yield Figure("one-file", what, "s", slowest)
    yield Figure("one-file-memory", f"the same: peak ({by_peak})", "MiB", largest)


def _validate_all(bench: Bench) -> dict[str, Done]:
    found = {}
    file = bench.folder / "shape.yaml"
    for name, shape in SHAPES.items():
        file.write_text(shape(), encoding="utf-8")
        found[name] = engine("validate", str(file), codes=_CODES)
    return found
