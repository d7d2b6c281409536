"""Start the job of one spec, beside `kubectl apply --server-side` of its three objects, and beside
records of its source in another namespace.
"""

import statistics
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks import peers
from benchmarks.bare import THREADS, in_threads
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.place import Place
from benchmarks.process import run
from benchmarks.rendered import write_manifests
from benchmarks.start_jobs import check_started, start
from engine.cluster.connect import connect
from engine.cluster.records import write_record
from engine.lifecycle.orphan import mark_orphaned
from engine.lifecycle.record import MaskedRecord, Record
from engine.refs import JobKey

NAME = "one-spec"
_MORE_ROUNDS = 3
"""These are short, and what else the machine does counts."""


def measure(bench: Bench) -> Iterator[Figure]:
    place, kubectl = bench.place, peers.kubectl(bench.place)
    works = {
        "engine": lambda: start(place, bench.folder, 1),
        **kubectl.work(lambda command: _kubectl(command, place, bench.folder)),
    }
    found = take_turns(bench.rounds * _MORE_ROUNDS, works)
    what = "one spec, reconcile --once --wait applied, whole process"
    values = found.pop("engine")
    yield Figure(NAME, what, "s", values, found, where=place.kind, without=kubectl.without)
    yield from _history(bench)


def _history(bench: Bench) -> Iterator[Figure]:
    """Each number of records is of a source of its own, so that all take turns."""
    place, sizes = bench.place, (0, 300, 3000) if bench.quick else (0, 3000, 30_000)
    with place.namespace("history") as namespace:
        works = {}
        for size in sizes:
            source = f"bench-{size}"
            _remember(place, namespace, source, size)
            works[str(size)] = partial(start, place, bench.folder, 1, "--source", source)
        found = take_turns(bench.rounds * _MORE_ROUNDS, works)
        requests = []
        for work in works.values():
            with place.requests("engine/") as asked:
                work()
            requests.append(len(asked))
    none, *_, many = (statistics.median(values) for values in found.values())
    beside = f"one spec beside {sizes[-1]:,} records of its source elsewhere"
    yield Figure(f"{NAME}-history", f"{beside}, by that beside none", "x", [many / none])
    more = [count - requests[0] for count in requests]
    yield Figure(f"{NAME}-history-requests", f"{beside}: requests more", "requests", [max(more)])


def _remember(place: Place, namespace: str, source: str, count: int) -> None:
    """Records of jobs that are over, whose specs are gone, as a reconcile has marked them."""
    client = connect(str(place.kubeconfig), connections=THREADS).client
    now, run = datetime.now(UTC), "0" * 64

    def remember(number: int) -> None:
        record = Record(JobKey(namespace, f"{source}-{number}"), source, run)
        over = mark_orphaned(record.as_completed(run, "", "done", now), now)
        assert over is not None
        write_record(client, MaskedRecord(over))

    in_threads(remember, range(count))


def _kubectl(command: Sequence[str], place: Place, folder: Path) -> float:
    with place.namespace("start") as namespace:
        manifests = write_manifests(folder, 1, namespace)
        argv = [*command, "--filename", str(manifests)]
        seconds = run(argv, environment=place.environment).seconds
        check_started(place.bare, namespace, 1)
        return seconds
