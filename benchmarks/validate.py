"""`engine validate` on 1,000 specs, beside a program that only reads them with ruamel.yaml."""

from collections.abc import Iterator

from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.process import engine
from benchmarks.specs import write_specs
from benchmarks.unchanged import floor

NAME = "validate"


def measure(bench: Bench) -> Iterator[Figure]:
    count = bench.size(1000, 100)
    specs = write_specs(bench.folder / "validate", count, "ci")
    works = {
        "engine": lambda: engine("validate", str(specs)).seconds,
        "bare reading": lambda: floor(specs),
    }
    found = take_turns(bench.rounds, works)
    what = f"validate {count:,} specs, whole process"
    yield Figure("validate-1000", what, "s", found.pop("engine"), found)
