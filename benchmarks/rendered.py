"""The objects of jobs as the engine renders them, for programs that only send them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.specs import TOKEN, write_specs
from engine.api.model import Config, Job, Limits
from engine.lifecycle.attempt import RenderConfig, render_attempt
from engine.refs import record_name
from engine.render.manifests import Manifests
from engine.render.secret_values import resolve_secrets
from engine.render.templates import Templates
from engine.specdir.load import load_specs
from engine.specdir.options import SpecOptions
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD, SOURCE

_RECORD_SIZE = 330
_SOURCE = "bench"
"""No engine that is measured takes these for its own."""


def write_manifests(folder: Path, count: int, namespace: str) -> Path:
    """A folder with one file a job: Pod, Secret and ConfigMap, for kubectl and kapp."""
    manifests = folder / f"{namespace}-manifests"
    manifests.mkdir()
    for job, made in _rendered(folder, count, namespace):
        objects = {"apiVersion": "v1", "kind": "List", "items": [made.pod, *made.dependents]}
        (manifests / f"{job.name}.json").write_text(json.dumps(objects), encoding="utf-8")
    return manifests


def write_jobs(folder: Path, count: int, namespace: str) -> Path:
    """One file with all of it and the records, for `benchmarks.bare_start`."""
    jobs = [
        {
            "namespace": namespace,
            "pod": made.pod,
            "dependents": made.dependents,
            "record": _record(job),
        }
        for job, made in _rendered(folder, count, namespace)
    ]
    file = folder / f"{namespace}-jobs.json"
    file.write_text(json.dumps(jobs), encoding="utf-8")
    return file


def _rendered(folder: Path, count: int, namespace: str) -> Iterator[tuple[Job, Manifests]]:
    specs = write_specs(folder / f"{namespace}-specs", count, namespace)
    rendering = RenderConfig(Templates(), _SOURCE, Limits())
    for job in load_specs(SpecOptions(paths=(str(specs),)), Config()).jobs:
        values, _ = resolve_secrets(job, {**os.environ, TOKEN: "not-a-secret"}, Limits())
        policies = {name: wanted[0] for name, wanted in job.policies.items()}
        yield job, render_attempt(rendering, job, 1, policies, values)


def _record(job: Job) -> dict[str, Any]:
    labels = {MANAGED_BY: MANAGER, COMPONENT: RECORD, JOB: job.name, SOURCE: _SOURCE}
    metadata = {"name": record_name(job.name), "namespace": job.namespace, "labels": labels}
    data = {"record.json": "x" * _RECORD_SIZE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
