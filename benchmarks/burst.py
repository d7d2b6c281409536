"""Specs copied at once into the folder of an engine that stays, until every job has had its run.

On the sandbox, in a process of its own: its node ends a pod as soon as it has begun. Time begins
when the last file is in place. The sandbox has its share in it; what the engine spends of a
processor is told beside it.
"""

import json
import shutil
import statistics
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from benchmarks.events import Events
from benchmarks.figures import Bench, Figure, bend, take_turns
from benchmarks.place import SANDBOX, Place, sandbox
from benchmarks.process import peak_mib
from benchmarks.specs import SCHEDULED, write_specs
from benchmarks.staying import staying_engine
from engine.cluster.records import CONFIG_MAP_RECORDS, SELECTOR
from engine.status.outcome import State
from tests.support.processes import cpu_seconds

NAME = "burst"
_NAMESPACE = "default"
_LONGEST_PER_JOB, _LONGEST_BEGIN = 0.2, 60.0
_MOST_ROUNDS = 3
"""A burst is thousands of jobs: each round is an average already."""


@dataclass(frozen=True, slots=True)
class _Cost:
    """What one burst came to: seconds as seen from outside, and what the engine took for it."""

    seconds: float
    cpu: float
    peak: float
    requests: int


def measure(bench: Bench) -> Iterator[Figure]:
    sizes = (50, 150, 500) if bench.quick else (500, 1500, 5000)
    costs: dict[int, list[_Cost]] = {size: [] for size in sizes}

    def once(size: int) -> float:
        folder = bench.folder / f"burst-{size}-{len(costs[size])}"
        costs[size].append(_burst(folder, size))
        return costs[size][-1].seconds

    take_turns(min(bench.rounds, _MOST_ROUNDS), {str(size): partial(once, size) for size in sizes})
    for size in sizes:
        yield from _figures(size, costs[size])
    first, second, last = sizes
    pairs = [*zip(costs[first], costs[last], strict=True)]
    for key, cost, ratios in (
        ("growth", "time", [b.seconds / a.seconds for a, b in pairs]),
        ("cpu-growth", "the engine's CPU time", [b.cpu / a.cpu for a, b in pairs]),
    ):
        words = f"{cost} per job of a burst of {last:,}, by that of {first:,}"
        per_job = [ratio * first / last for ratio in ratios]
        yield Figure(f"{NAME}-{key}", words, "x", per_job, where=SANDBOX)
    peaks = [statistics.median(cost.peak for cost in costs[size]) for size in sizes]
    words = f"memory of a spec of a burst beyond the first {second:,}, by that of those"
    yield Figure(f"{NAME}-memory-growth", words, "x", [bend(sizes, peaks)], where=SANDBOX)


def _figures(size: int, costs: list[_Cost]) -> Iterator[Figure]:
    words = f"{size:,} specs copied in at once, until all are over"
    for key, what, unit, values in (
        ("time", words, "s", [cost.seconds for cost in costs]),
        ("memory", f"{words}: peak", "MiB", [cost.peak for cost in costs]),
    ):
        yield Figure(f"{NAME}-{key}-{size}", what, unit, values, size=size, where=SANDBOX)
    for key, what, unit, values in (
        ("per-job", "time per job", "ms", [1000 * cost.seconds / size for cost in costs]),
        ("cpu", "the engine's CPU time per job", "ms", [1000 * cost.cpu / size for cost in costs]),
        ("requests", "requests per job", "requests", [cost.requests / size for cost in costs]),
    ):
        yield Figure(f"{NAME}-{key}-{size}", f"{words}: {what}", unit, values, where=SANDBOX)


def _burst(folder: Path, size: int) -> _Cost:
    """Errors: RuntimeError when some jobs never get their run, or one that doesn't succeed."""
    prepared = write_specs(folder / "prepared", size, _NAMESPACE, SCHEDULED)
    specs = folder / "specs"
    specs.mkdir()
    with sandbox() as place, staying_engine(place, str(specs)) as pid, _Ends(place, size) as ends:
        before = cpu_seconds(pid)
        with place.requests("engine/") as asked:
            for file in sorted(prepared.iterdir()):
                shutil.copy(file, specs)
            copied = perf_counter()
            over = ends.wait(_LONGEST_BEGIN + size * _LONGEST_PER_JOB)
            cpu, peak = cpu_seconds(pid) - before, peak_mib(pid)
    shutil.rmtree(folder)
    return _Cost(over - copied, cpu, peak, len(asked))


class _Ends:
    """Counts the jobs whose record says that they are over, through a watch of this process."""

    def __init__(self, place: Place, count: int) -> None:
        self._wanted = count
        self._states: dict[str, State] = {}
        self._over = threading.Event()
        self._at = 0.0
        path = f"/api/v1/namespaces/{_NAMESPACE}/configmaps"
        self._events = Events(place, path, self._take, SELECTOR)

    def __enter__(self) -> Self:
        self._events.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._events.__exit__(*error)

    def wait(self, seconds: float) -> float:
        """When the last one was over. Errors: RuntimeError if one fails or they take longer."""
        all_over = self._over.wait(seconds)
        found = [*self._states.values()]
        if not all_over or found.count(State.SUCCEEDED) != self._wanted:
            counts = json.dumps({state: found.count(state) for state in found})
            raise RuntimeError(f"of {self._wanted} jobs only these are over: {counts}")
        return self._at

    def _take(self, event: dict[str, Any], at: float) -> None:
        record = CONFIG_MAP_RECORDS.parse(event["object"])
        assert record is not None
        if record.state.is_final:
            self._states[record.key.name] = record.state
            if len(self._states) == self._wanted:
                self._at = at
                self._over.set()
