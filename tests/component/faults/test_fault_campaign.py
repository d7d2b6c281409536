"""Many bad days: by each seed a network and an API server that fail in their own way.

With some of them the namespace is full for a while, a right is missing, records aren't admitted,
or a node is lost; a job that `--once` gave up for that is reconciled again afterwards.
"""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from engine.api.kubernetes_schema import SHIPPED
from engine.api.model import Config, Job
from engine.cluster.connect import connect
from engine.errors import UnreachableError
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.object_source import files_of, list_objects
from engine.reconcile.once import OnceRequest, OnceResult, RunOnce
from engine.reconcile.options import RunOptions
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.sandbox import Sandbox
from engine.specdir.active import ActiveSpecs
from engine.specdir.load import load_specs
from engine.specdir.options import SpecOptions
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor
from tests.support.api import Api
from tests.support.clusters import NAMESPACE
from tests.support.fault_campaign import (
    SPECS,
    assert_ended,
    document,
    of_objects,
    prepare,
    random_faults,
    records,
)
from tests.support.troubles import gates_lifted, playing, troubles_by_lot

SEEDS = int(os.environ.get("ENGINE_CAMPAIGN_SEEDS", "30"))
FIRST = int(os.environ.get("ENGINE_CAMPAIGN_SEED", "0"))
WORKERS = 12
TIMEOUT = 240.0
"""Seconds; how long it takes is no promise here, that it ends is."""
MOST_TRIES = 3
JOB_SPECS = "jobs.engine/v1alpha1/jobspecs"


@pytest.mark.timeout(300 + 10 * SEEDS)
@pytest.mark.parametrize("source", ["files", "objects"])
def test_every_job_ends_as_its_spec_says_whatever_the_network_does(
    tmp_path: Path, source: str
) -> None:
    """Of objects a third of the seeds: everything after the source is the same. What befalls the
    records of files befalls their status.
    """
    is_file = source == "files"
    specs, figures = _write_specs(tmp_path) if is_file else [], Counter[str]()
    with ThreadPoolExecutor(WORKERS) as pool:
        seeds = range(FIRST, FIRST + (SEEDS if is_file else -(-SEEDS // 3)))
        found = pool.map(lambda seed: _play(seed, specs, tmp_path, figures), seeds)
    failures = [failure for failure in found if failure]
    assert not failures, "\n".join(failures)
    print(f"{SEEDS} seeds: {dict(figures)}")  # noqa: T201 - for `make soak`


def _play(seed: int, specs: list[str], folder: Path, figures: Counter[str]) -> str:
    """What went wrong with this seed, and how to see it again; "" if nothing did."""
    chance = random.Random(seed)
    faults = [*random_faults(chance)]
    faults = faults if specs else [*of_objects(faults, chance)]
    with Sandbox(seed=seed) as sandbox:
        second = prepare(sandbox)
        troubles = troubles_by_lot(sandbox, second, chance, objects=not specs)
        kubeconfig = sandbox.write_kubeconfig(folder / f"kubeconfig-{seed}")
        for name in () if specs else SPECS:
            api = Api.from_kubeconfig(kubeconfig)
            api.create(JOB_SPECS, json.loads(document(name)), NAMESPACE)
        for fault in faults:
            sandbox.faults.add(fault)
        try:
            with gates_lifted(sandbox, kubeconfig, chance):
                with playing(troubles):
                    result = _reconcile_patiently(kubeconfig, specs)
                if any(trouble.is_error for trouble in troubles) and _errors(result):
                    result = _reconcile_patiently(kubeconfig, specs)
            _judge_end(sandbox, result)
            figures.update(trouble.name for trouble in troubles)
            figures.update(_outcomes(sandbox))
            sandbox.faults.clear()
            sandbox.requests.clear()
            again = _reconcile(kubeconfig, specs)
            assert not any(job.changed for job in again.jobs)
            assert sandbox.requests.writes == []
        except Exception as error:  # noqa: BLE001 - every seed is to be told, with its faults
            seen = [f"{sandbox.faults.hits(fault)}x {fault}" for fault in faults]
            seen += [f"{trouble.name} for {trouble.phases} s" for trouble in troubles]
            lines = "\n    ".join([f"{type(error).__name__}: {error}", *seen])
            return f"ENGINE_CAMPAIGN_SEED={seed} ENGINE_CAMPAIGN_SEEDS=1\n    {lines}"
    return ""


def _reconcile_patiently(kubeconfig: Path, specs: list[str]) -> OnceResult:
    """As a CI does: a server that can't be reached for ten seconds is asked again.

    A few broken connections take so long on a machine with much else to do.
    """
    for _ in range(MOST_TRIES - 1):
        with suppress(UnreachableError):
            return _reconcile(kubeconfig, specs)
    return _reconcile(kubeconfig, specs)


def _reconcile(kubeconfig: Path, specs: list[str]) -> OnceResult:
    client = connect(str(kubeconfig)).client
    jobs: Sequence[Job] = load_specs(
        SpecOptions(paths=tuple(specs), namespace=NAMESPACE), Config()
    ).jobs
    if not specs:
        ask = partial(list_objects, client, (NAMESPACE,), "")
        active = ActiveSpecs(SpecOptions())
        active.update(files_of(retry_transient(ask), SHIPPED), Config())
        jobs = tuple(active.jobs.values())
    dependencies = ControllerDependencies({}, Redactor(), _say_nothing)
    request = OnceRequest(
        client=client,
        jobs=jobs,
        refused={},
        config=Config(),
        templates=Templates(),
        options=RunOptions(source="campaign", timeout=TIMEOUT, from_cluster=not specs),
    )
    return RunOnce(request, dependencies).run()


def _say_nothing(event: Event) -> None:
    del event


def _judge_end(sandbox: Sandbox, result: OnceResult) -> None:
    assert not result.timed_out, "not every job came to its end"
    assert _errors(result) == []
    assert_ended(sandbox)


def _outcomes(sandbox: Sandbox) -> Iterator[str]:
    for _, record in records(sandbox):
        yield from (attempt["outcome"] for attempt in record["attempts"])


def _errors(result: OnceResult) -> list[str]:
    return [str(job.error) for job in result.jobs if job.error]


def _write_specs(folder: Path) -> list[str]:
    paths = []
    for name in SPECS:
        path = folder / f"{name}.yaml"
        path.write_text(document(name), encoding="utf-8")
        paths.append(str(path))
    return paths
