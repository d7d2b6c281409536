"""Start the job of one spec, beside `kubectl apply --server-side` of its three objects."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import peers
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.place import Place
from benchmarks.process import run
from benchmarks.rendered import write_manifests
from benchmarks.start_jobs import check_started, start

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


def _kubectl(command: Sequence[str], place: Place, folder: Path) -> float:
    with place.namespace("start") as namespace:
        manifests = write_manifests(folder, 1, namespace)
        argv = [*command, "--filename", str(manifests)]
        seconds = run(argv, environment=place.environment).seconds
        check_started(place.bare, namespace, 1)
        return seconds
