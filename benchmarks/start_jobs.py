"""Start 300 jobs of Pod, Secret and ConfigMap, beside a bare loop and kubectl.

The bare loop makes the same five writes of each job, of objects that were rendered before. kubectl
applies the same three objects, without a record, and leaves the gate.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.bare import Bare, in_threads
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.place import Place
from benchmarks.process import engine, run
from benchmarks.specs import TOKEN, write_specs
from engine.api.model import Config, Job, Limits
from engine.reconcile.rendering import RenderConfig, render_attempt
from engine.reconcile.secret_values import resolve_secrets
from engine.refs import record_name
from engine.render.manifests import Manifests
from engine.render.templates import Templates
from engine.specdir.load import load_specs
from engine.transform.set_owner_reference import set_owner_reference
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD, SOURCE

NAME = "start-jobs"
_JSON_PATCH = "application/json-patch+json"
_RECORD_SIZE = 330


def measure(bench: Bench) -> Iterator[Figure]:
    count = bench.size(300, 40)
    place = bench.place
    works = {
        "engine": lambda: count / _engine(place, bench.folder, count),
        "bare loop": lambda: count / _bare(place, bench.folder, count),
    }
    if place.kubectl:
        works["kubectl apply"] = lambda: count / _kubectl(place, bench.folder, count)
    found = take_turns(bench.rounds, works)
    what = f"start {count} jobs: Pod, Secret, ConfigMap and record of each"
    yield Figure(NAME, what, "jobs/s", found.pop("engine"), found, where=place.kind)


def _engine(place: Place, folder: Path, count: int) -> float:
    with place.namespace("start") as namespace:
        specs = write_specs(folder / namespace, count, namespace)
        command = ("reconcile", "--once", "--wait", "applied", str(specs))
        seconds = engine(*command, environment=place.environment).seconds
        _check(place.bare, namespace, count, records=count)
        return seconds


def _bare(place: Place, folder: Path, count: int) -> float:
    with place.namespace("start") as namespace:
        jobs = _rendered(folder, count, namespace)
        began = time.perf_counter()
        in_threads(lambda job: _start(place.bare, *job), jobs)
        seconds = time.perf_counter() - began
        _check(place.bare, namespace, count, records=count)
        return seconds


def _kubectl(place: Place, folder: Path, count: int) -> float:
    with place.namespace("start") as namespace:
        manifests = folder / f"{namespace}-manifests"
        manifests.mkdir()
        for job, made in _rendered(folder, count, namespace):
            objects = {"apiVersion": "v1", "kind": "List", "items": [made.pod, *made.dependents]}
            (manifests / f"{job.name}.json").write_text(json.dumps(objects), encoding="utf-8")
        command = [place.kubectl, "apply", "--server-side", "-f", str(manifests)]
        seconds = run(command, environment=place.environment).seconds
        _check(place.bare, namespace, count, records=0)
        return seconds


def _rendered(folder: Path, count: int, namespace: str) -> list[tuple[Job, Manifests]]:
    specs = write_specs(folder / f"{namespace}-specs", count, namespace)
    jobs = load_specs([str(specs)], Config()).jobs
    rendering = RenderConfig(Templates(), "default", Limits())
    made = []
    for job in jobs:
        values, _ = resolve_secrets(job, {**os.environ, TOKEN: "not-a-secret"}, Limits())
        policies = {name: wanted[0] for name, wanted in job.policies.items()}
        made.append((job, render_attempt(rendering, job, 1, policies, values)))
    return made


def _start(bare: Bare, job: Job, made: Manifests) -> None:
    path = f"/api/v1/namespaces/{job.namespace}"
    pod = bare.write("POST", f"{path}/pods", made.pod)
    _dependents(bare, path, pod, made.dependents)
    bare.write("POST", f"{path}/configmaps", _record(job))
    ungate = [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]
    bare.write("PATCH", f"{path}/pods/{pod['metadata']['name']}", ungate, _JSON_PATCH)


def _dependents(
    bare: Bare, path: str, pod: dict[str, Any], manifests: Sequence[dict[str, Any]]
) -> None:
    metadata = pod["metadata"]
    for manifest in manifests:
        owned = set_owner_reference(manifest, pod=metadata["name"], uid=metadata["uid"])
        bare.write("POST", f"{path}/{manifest['kind'].lower()}s", owned)


def _record(job: Job) -> dict[str, Any]:
    labels = {MANAGED_BY: MANAGER, COMPONENT: RECORD, JOB: job.name, SOURCE: "default"}
    metadata = {"name": record_name(job.name), "namespace": job.namespace, "labels": labels}
    data = {"record.json": "x" * _RECORD_SIZE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _check(bare: Bare, namespace: str, count: int, *, records: int) -> None:
    """That all of the work was done."""
    path = f"/api/v1/namespaces/{namespace}"
    selector = f"?labelSelector={MANAGED_BY}%3D{MANAGER}"
    found = [len(bare.get(f"{path}/{k}{selector}")["items"]) for k in ("pods", "configmaps")]
    assert found == [count, count + records], found
