"""Start 300 and 1,000 jobs of Pod, Secret and ConfigMap, beside kapp and a bare program.

All are whole processes. The bare program makes the same five writes of each job, of objects that
were rendered before. kapp sends the same three objects, without a record, and leaves the gate.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import peers
from benchmarks.bare import Bare
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.place import Place
from benchmarks.process import ROOT, engine, run
from benchmarks.rendered import write_jobs, write_manifests
from benchmarks.specs import write_specs
from engine.wellknown import MANAGED_BY, MANAGER

NAME = "start-jobs"


def measure(bench: Bench) -> Iterator[Figure]:
    for size, quick in ((300, 40), (1000, 80)):
        yield _figure(bench, f"{NAME}-{size}", bench.size(size, quick))


def _figure(bench: Bench, name: str, count: int) -> Figure:
    place, folder, kapp = bench.place, bench.folder, peers.kapp(bench.place)
    found = take_turns(
        bench.rounds,
        {
            "engine": lambda: count / start(place, folder, count),
            "bare program": lambda: count / _bare(place, folder, count),
            **kapp.work(lambda command: count / _kapp(command, place, folder, count)),
        },
    )
    what = f"start {count:,} jobs: Pod, Secret, ConfigMap and record of each, whole process"
    values = found.pop("engine")
    return Figure(name, what, "jobs/s", values, found, where=place.kind, without=kapp.without)


def start(place: Place, folder: Path, count: int, *more: str) -> float:
    """Seconds of the engine, with `more` options."""
    with place.namespace("start") as namespace:
        specs = write_specs(folder / namespace, count, namespace)
        command = ("reconcile", "--once", "--wait", "applied", str(specs), *more)
        seconds = engine(*command, environment=place.environment).seconds
        check_started(place.bare, namespace, count, records=count)
        return seconds


def _bare(place: Place, folder: Path, count: int) -> float:
    with place.namespace("start") as namespace:
        jobs = write_jobs(folder, count, namespace)
        command = [sys.executable, "-m", "benchmarks.bare_start", str(place.kubeconfig), str(jobs)]
        seconds = run(command, folder=ROOT).seconds
        check_started(place.bare, namespace, count, records=count)
        return seconds


def _kapp(command: Sequence[str], place: Place, folder: Path, count: int) -> float:
    with place.namespace("start") as namespace:
        manifests = write_manifests(folder, count, namespace)
        seconds = peers.kapp_deploy(command, place, namespace, manifests).seconds
        check_started(place.bare, namespace, count)
        return seconds


def check_started(bare: Bare, namespace: str, count: int, *, records: int = 0) -> None:
    """That all of the work was done."""
    path = f"/api/v1/namespaces/{namespace}"
    selector = f"?labelSelector={MANAGED_BY}%3D{MANAGER}"
    found = [len(bare.get(f"{path}/{k}{selector}")["items"]) for k in ("pods", "configmaps")]
    assert found == [count, count + records], found
