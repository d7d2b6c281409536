"""From a file that is dropped to the pod's create being accepted, with 500 specs already there.

Time begins with the rename that puts the file in place and ends with the pod in a watch of this
process; a bare create is timed through the same watch. Both take turns, drop by drop.
"""

import queue
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from benchmarks.events import Events
from benchmarks.figures import Bench, Figure
from benchmarks.finished import finished_jobs
from benchmarks.place import Place
from benchmarks.specs import text_of
from benchmarks.staying import staying_engine
from engine.wellknown import JOB

NAME = "drop-to-create"
_LONGEST_WAIT = 10.0
_FIRST_DROP = 50_000
"""Numbers of the specs that are dropped: far from those that are there."""


def measure(bench: Bench) -> Iterator[Figure]:
    there, place = bench.size(500, 50), bench.place
    with place.namespace("drop") as namespace:
        specs = finished_jobs(place, bench.folder, there, namespace)
        with staying_engine(place, str(specs)), Arrivals(place, namespace) as arrivals:

            def drop(number: int) -> float:
                hidden = specs / f".{number}.new"
                hidden.write_text(text_of(number, namespace), encoding="utf-8")
                began = time.perf_counter()
                hidden.rename(specs / f"job-{number:05}.yaml")
                return began

            what = f"file dropped -> Pod create accepted, {there} specs there"
            yield from in_turns(bench, arrivals, drop, NAME, what)


def in_turns(
    bench: Bench, arrivals: "Arrivals", drop: Callable[[int], float], name: str, what: str
) -> Iterator[Figure]:
    """`drop` adds the spec of a job, and returns when its time begins."""
    drops, place = bench.size(100, 10), bench.place
    p50: dict[str, list[float]] = {"engine": [], "bare create": []}
    p99: dict[str, list[float]] = {"engine": [], "bare create": []}
    for turn in range(bench.rounds):
        first = _FIRST_DROP + turn * drops
        took = _round(place, drop, arrivals, range(first, first + drops))
        for label, seconds in took.items():
            p50[label].append(1000 * statistics.median(seconds))
            p99[label].append(1000 * statistics.quantiles(seconds, n=100)[98])
    for quantile, found in (("p50", p50), ("p99", p99)):
        words = f"{what}, {quantile} of {drops}"
        values = found.pop("engine")
        yield Figure(f"{name}-{quantile}", words, "ms", values, found, where=place.kind)


def _round(
    place: Place, drop: Callable[[int], float], arrivals: "Arrivals", numbers: range
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"engine": [], "bare create": []}
    for number in numbers:
        began = drop(number)
        found["engine"].append(arrivals.of(f"job-{number:05}") - began)
        time.sleep(random.uniform(0.05, 0.15))
        began = time.perf_counter()
        place.bare.write("POST", arrivals.path, _pod(f"bare-{number}"))
        found["bare create"].append(arrivals.of(f"bare-{number}") - began)
        time.sleep(random.uniform(0.05, 0.15))
    return found


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/tools/build:3.20"}
    spec = {"restartPolicy": "Never", "schedulerName": "nobody", "containers": [container]}
    return {"metadata": {"name": name, "labels": {JOB: name}}, "spec": spec}


class Arrivals:
    """When each job's first pod came through a watch of this process."""

    def __init__(self, place: Place, namespace: str) -> None:
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self._seen: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()
        self._events = Events(place, self.path, self._take)

    def __enter__(self) -> Self:
        self._events.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._events.__exit__(*error)

    def of(self, name: str) -> float:
        """Errors: queue.Empty when it doesn't come."""
        while True:
            job, at = self._seen.get(timeout=_LONGEST_WAIT)
            if job == name:
                return at

    def _take(self, event: dict[str, Any], at: float) -> None:
        if event["type"] == "ADDED":
            self._seen.put((event["object"]["metadata"]["labels"][JOB], at))
