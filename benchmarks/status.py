"""`engine status` of one namespace, beside importing the client that reads a kubeconfig."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.finished import finished_jobs
from benchmarks.process import ENGINE, run

NAME = "status"
_JOBS = 20
_MORE_ROUNDS = 3
"""These are short, and a hundredth of a second counts."""


def measure(bench: Bench) -> Iterator[Figure]:
    place = bench.place
    python = str(Path(ENGINE).with_name("python"))
    with place.namespace("status") as namespace:
        finished_jobs(place, bench.folder, _JOBS, namespace, pods=True)
        commands = {
            "engine": [ENGINE, "status", "-n", namespace],
            "import kubernetes.config": [python, "-c", "import kubernetes.config"],
        }

        def seconds(label: str) -> float:
            return run(commands[label], environment=place.environment).seconds

        works = {label: partial(seconds, label) for label in commands}
        found = take_turns(bench.rounds * _MORE_ROUNDS, works)
    what = f"engine status of {_JOBS} jobs, whole process"
    yield Figure(NAME, what, "s", found.pop("engine"), found, where=place.kind)
