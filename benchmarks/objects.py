"""JobSpec objects beside files: started by an engine that stays, seen soon, and looked at again.

Time of a start begins with the first write of a spec, by eight threads, and ends when the last pod
has lost its gate in a watch of this process. Files and objects are of the same jobs. What an author
writes is made before: it is no time of the engine's.
"""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from msgspec.structs import replace
from ruamel.yaml import YAML

from benchmarks.bare import in_threads
from benchmarks.events import Events
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.finished import finished_jobs, finished_record
from benchmarks.latency import Arrivals, in_turns
from benchmarks.place import CLUSTER, Asked, Place
from benchmarks.process import engine, peak_mib
from benchmarks.specs import text_of
from benchmarks.staying import staying_engine
from engine.api.kubernetes_schema import SHIPPED
from engine.api.model import Config, Job
from engine.cluster.connect import connect
from engine.cluster.records import STATUS_RECORDS
from engine.lifecycle.record import MaskedRecord
from engine.reconcile.object_source import files_of, list_objects
from engine.specdir.active import ActiveSpecs
from engine.specdir.options import SpecOptions
from engine.wellknown import OBJECTS_SOURCE
from tests.support.client import Client
from tests.support.definitions import install_definitions
from tests.support.job_specs import JOB_SPECS
from tests.support.processes import resident_mib

NAME = "objects"
_PER_JOB = 0.5
"""Seconds for which the start of a job is waited for."""
_SETTLES = 10.0
_SECRET = "{fromEnv: ENGINE_SECRET_TOKEN}", "{value: not-a-secret}"
"""An object can't name a variable of the engine's."""


def measure(bench: Bench) -> Iterator[Figure]:
    if bench.place.kind == CLUSTER:
        install_definitions(Client.from_kubeconfig(bench.place.kubeconfig))
    for size, quick in ((300, 40), (1000, 80)):
        yield from _start(bench, size, bench.size(size, quick))
    yield from _latency(bench)
    yield from _unchanged(bench)


def _start(bench: Bench, size: int, count: int) -> Iterator[Figure]:
    place, writes = bench.place, list[float]()

    def objects() -> float:
        with place.namespace("objects") as namespace:
            place_of = ("--from-cluster", "-n", namespace)
            documents = [_document(namespace, number) for number in range(count)]
            post = partial(_post, place, documents)
            with place.requests("engine/") as asked:
                seconds = _started(place, namespace, count, post, *place_of)
            writes.append(len(_status_writes(asked)) / count)
            return count / seconds

    def files() -> float:
        with place.namespace("objects") as namespace:
            specs = bench.folder / namespace
            specs.mkdir()
            drop = partial(_drop, specs, namespace)
            seconds = _started(place, namespace, count, drop, str(specs))
            shutil.rmtree(specs)
            return count / seconds

    found = take_turns(bench.rounds, {"engine": objects, "files": files})
    what = f"apply {count:,} JobSpec objects beside an engine that stays, until all are started"
    values = found.pop("engine")
    yield Figure(f"{NAME}-{size}", what, "jobs/s", values, found, where=place.kind)
    yield Figure(f"{NAME}-{size}-writes", f"{what}: status writes per job", "writes", writes)


def _started(
    place: Place, namespace: str, count: int, write: Callable[[int], object], *specs: str
) -> float:
    """Seconds. Errors: RuntimeError where they take too long."""
    started, all_started = dict[str, float](), threading.Event()

    def take(event: dict[str, Any], at: float) -> None:
        pod = event["object"]
        if not pod["spec"].get("schedulingGates"):
            started.setdefault(pod["metadata"]["uid"], at)
            if len(started) == count:
                all_started.set()

    path = f"/api/v1/namespaces/{namespace}/pods"
    with staying_engine(place, *specs, "--allow-empty"), Events(place, path, take):
        began = perf_counter()
        in_threads(write, range(count))
        if not all_started.wait(60 + count * _PER_JOB):
            raise RuntimeError(f"of {count} jobs only {len(started)} are started")
        time.sleep(0.5)  # what follows a start is asked, too
    return max(started.values()) - began


def _latency(bench: Bench) -> Iterator[Figure]:
    there, place = bench.size(500, 50), bench.place
    with place.namespace("objects") as namespace:
        _finished_objects(bench, there, namespace)
        with (
            staying_engine(place, "--from-cluster", "-n", namespace),
            Arrivals(place, namespace) as arrivals,
        ):

            def apply(number: int) -> float:
                _create(place, _document(namespace, number))
                return perf_counter()

            what = f"apply returns -> Pod create accepted, {there} objects there"
            yield from in_turns(bench, arrivals, apply, f"{NAME}-to-create", what)


def _unchanged(bench: Bench) -> Iterator[Figure]:
    count, place = bench.size(10_000, 300), bench.place
    peaks: dict[str, list[float]] = {"engine": [], "files": []}
    with place.namespace("objects") as of_objects, place.namespace("objects") as of_files:
        _finished_objects(bench, count, of_objects)
        specs = finished_jobs(place, bench.folder, count, of_files)

        def look(label: str, *where: str) -> float:
            done = engine("reconcile", "--once", *where, environment=place.environment)
            # Of another measurement's source an object may expire meanwhile.
            is_unchanged = "nothing changed" in done.out or ", 0 changed" in done.out
            assert is_unchanged, done.out[-500:]
            peaks[label].append(done.peak)
            return done.seconds

        objects = partial(look, "engine", "--from-cluster", "-n", of_objects)
        with place.requests("engine/") as asked:
            objects()
        works = {"engine": objects, "files": partial(look, "files", str(specs))}
        seconds = take_turns(bench.rounds, works)
        stays = [_stays(place, "--from-cluster", "-n", of_objects), _stays(place, str(specs))]
    yield from _staying(f"an engine that stays over {count:,} finished JobSpec objects", *stays)
    what = f"reconcile {count:,} finished, unchanged JobSpec objects"
    writes = sum(one.is_write for one in asked)
    for key, unit, found in (("time", "s", seconds), ("memory", "MiB", peaks)):
        values, files = found["engine"], {"files": found["files"]}
        words = f"{what}: {'peak' if unit == 'MiB' else 'whole process'}"
        yield Figure(f"{NAME}-unchanged-{key}", words, unit, values, files, where=place.kind)
    yield Figure(f"{NAME}-unchanged-writes", f"{what}: writes", "writes", [writes])


def _stays(place: Place, *specs: str) -> dict[str, float]:
    """MiB and requests of an engine that stays where all jobs are over; it renews its Lease."""
    with place.requests("engine/") as asked, staying_engine(place, *specs) as pid:
        time.sleep(_SETTLES)
        found = {"peak": peak_mib(pid), "settled": resident_mib(pid)}
    others = [one for one in asked if one.verb != "watch" and one.resource != "leases"]
    return {**found, "requests": len(others), "writes": sum(one.is_write for one in others)}


def _staying(what: str, objects: dict[str, float], files: dict[str, float]) -> Iterator[Figure]:
    for key, unit in (("peak", "MiB"), ("settled", "MiB"), ("requests", ""), ("writes", "")):
        beside = {"files": [files[key]]}
        yield Figure(f"{NAME}-staying-{key}", f"{what}: {key}", unit or key, [objects[key]], beside)


def _finished_objects(bench: Bench, count: int, namespace: str) -> None:
    """Objects whose status is the record of a run that succeeded."""
    client, versions = connect(str(bench.place.kubeconfig), connections=10).client, {}

    def make(number: int) -> None:
        made = _create(bench.place, _document(namespace, number))["metadata"]
        versions[made["name"]] = made["resourceVersion"]

    def finish(job: Job) -> None:
        record = replace(finished_record(job).record, source=OBJECTS_SOURCE, object=job.object)
        STATUS_RECORDS.write(client, MaskedRecord(replace(record, version=versions[job.name])))

    in_threads(make, range(count))
    active = ActiveSpecs(SpecOptions())
    active.update(files_of(list_objects(client, (namespace,), ""), SHIPPED), Config())
    in_threads(finish, active.jobs.values())


def _text(namespace: str, number: int) -> str:
    return text_of(number, namespace).replace(*_SECRET)


def _document(namespace: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(_text(namespace, number))
    return found


def _create(place: Place, document: dict[str, Any]) -> dict[str, Any]:
    group, _, plural = JOB_SPECS.rpartition("/")
    path = f"/apis/{group}/namespaces/{document['metadata']['namespace']}/{plural}"
    return place.bare.write("POST", path, document)


def _post(place: Place, documents: list[dict[str, Any]], number: int) -> None:
    _create(place, documents[number])


def _drop(specs: Path, namespace: str, number: int) -> None:
    hidden = specs / f".{number}.new"
    hidden.write_text(_text(namespace, number), encoding="utf-8")
    hidden.rename(specs / f"job-{number:05}.yaml")


def _status_writes(asked: list[Asked]) -> list[Asked]:
    return [one for one in asked if one.is_write and one.resource.startswith("jobspecs")]
