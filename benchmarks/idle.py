"""An engine that stays and has nothing to do: what it takes of a processor, and what it asks.

All jobs are over, and their pods wait for their TTL. Watches and the renewals of the Lease aren't
counted: without them it would neither hear of anything nor lead.
"""

import time
from collections.abc import Iterator

from benchmarks.figures import Bench, Figure
from benchmarks.finished import finished_jobs
from benchmarks.staying import staying_engine
from tests.support.processes import cpu_seconds

NAME = "idle"
_INTERVAL, _SETTLES = "5s", 10.0
"""It looks for what it has made elsewhere once, in its first pass of the TTL rule: until then it
isn't idle. The passes after that are measured, oftener than anybody has them."""


def measure(bench: Bench) -> Iterator[Figure]:
    place, count, seconds = bench.place, bench.size(1000, 100), bench.size(60, 20)
    with place.namespace("idle") as namespace:
        specs = finished_jobs(place, bench.folder, count, namespace, pods=True)
        with staying_engine(place, str(specs), "--prune-interval", _INTERVAL) as pid:
            time.sleep(_SETTLES)
            with place.requests("engine/") as asked:
                share = _share(pid, seconds)
    what = f"an engine that stays, {count:,} jobs over, {seconds} s"
    others = [one for one in asked if one.verb != "watch" and one.resource != "leases"]
    for key, words, unit, value in (
        ("cpu", "CPU of one core", "%", share),
        ("requests", "requests but watches and renewals", "requests", len(others)),
    ):
        yield Figure(f"{NAME}-{key}", f"{what}: {words}", unit, [value], where=place.kind)


def _share(pid: int, seconds: float) -> float:
    """Percent of one core that the process takes in `seconds`."""
    began, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)
