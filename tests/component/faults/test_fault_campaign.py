"""Many bad days: by each seed a network and an API server that fail in their own way."""

import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.api.model import Config
from engine.cluster.connect import connect
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.once import RunOnce
from engine.reconcile.once_result import OnceOptions, OnceResult
from engine.render.templates import Templates
from engine.sandbox import Sandbox
from engine.specdir.load import load_specs
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor
from tests.support.clusters import NAMESPACE
from tests.support.fault_campaign import (
    SPECS,
    assert_ended,
    document,
    narrow_quota,
    prepare,
    random_faults,
)

SEEDS = int(os.environ.get("ENGINE_CAMPAIGN_SEEDS", "100"))
FIRST = int(os.environ.get("ENGINE_CAMPAIGN_SEED", "0"))
WORKERS = 12
TIMEOUT = 60.0


@pytest.mark.timeout(300 + 3 * SEEDS)
def test_every_job_ends_as_its_spec_says_whatever_the_network_does(tmp_path: Path) -> None:
    specs = _write_specs(tmp_path)
    with ThreadPoolExecutor(WORKERS) as pool:
        found = pool.map(lambda seed: _play(seed, specs, tmp_path), range(FIRST, FIRST + SEEDS))
    failures = [failure for failure in found if failure]
    assert not failures, "\n".join(failures)


def _play(seed: int, specs: list[str], folder: Path) -> str:
    """What went wrong with this seed, and how to see it again; "" if nothing did."""
    chance = random.Random(seed)
    faults = list(random_faults(chance))
    with Sandbox(seed=seed) as sandbox:
        prepare(sandbox)
        kubeconfig = sandbox.write_kubeconfig(folder / f"kubeconfig-{seed}")
        for fault in faults:
            sandbox.faults.add(fault)
        try:
            with narrow_quota(sandbox, chance):
                result = _reconcile(kubeconfig, specs)
            _judge_end(sandbox, result)
            sandbox.faults.clear()
            sandbox.requests.clear()
            again = _reconcile(kubeconfig, specs)
            assert not any(job.changed for job in again.jobs)
            assert sandbox.requests.writes == []
        except Exception as error:  # noqa: BLE001 - every seed is to be told, with its faults
            seen = [f"{sandbox.faults.hits(fault)}x {fault}" for fault in faults]
            lines = "\n    ".join([f"{type(error).__name__}: {error}", *seen])
            return f"ENGINE_CAMPAIGN_SEED={seed} ENGINE_CAMPAIGN_SEEDS=1\n    {lines}"
    return ""


def _reconcile(kubeconfig: Path, specs: list[str]) -> OnceResult:
    jobs = load_specs(specs, Config(), NAMESPACE).jobs
    options = OnceOptions("campaign", timeout=TIMEOUT)
    client = connect(str(kubeconfig)).client
    dependencies = ControllerDependencies({}, Redactor(), _say_nothing)
    return RunOnce(client, jobs, Config(), options, Templates(), dependencies).run()


def _say_nothing(event: Event) -> None:
    del event


def _judge_end(sandbox: Sandbox, result: OnceResult) -> None:
    assert not result.timed_out, "not every job came to its end"
    assert [str(job.error) for job in result.jobs if job.error] == []
    assert_ended(sandbox)


def _write_specs(folder: Path) -> list[str]:
    paths = []
    for name in SPECS:
        path = folder / f"{name}.yaml"
        path.write_text(document(name), encoding="utf-8")
        paths.append(str(path))
    return paths
