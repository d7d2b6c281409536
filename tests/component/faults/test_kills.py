"""Engines of JobSpec objects that are killed at random instants, while writes of their status fail.

The campaign on a real cluster kills more engines; there a reply can't be lost at will.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from engine.sandbox import Fault, Sandbox
from tests.support.clusters import NAMESPACE, engine_on
from tests.support.engine import Engine, Process, kill
from tests.support.engine_process import EngineProcess
from tests.support.fault_campaign import (
    SPECS,
    assert_ended,
    document,
    of_objects,
    prepare,
    random_faults,
    records,
)
from tests.support.troubles import Trouble, gates_lifted, playing, troubles_by_lot

SEEDS = int(os.environ.get("ENGINE_SANDBOX_KILL_SEEDS", "4"))
FIRST = int(os.environ.get("ENGINE_CAMPAIGN_SEED", "0"))
WORKERS = 4
MOST_KILLS = 30
MOST_TRIES = 4
"""Of the last engine, which is not killed: it may give a job up for a fault."""


@pytest.mark.timeout(300 + 60 * SEEDS)
def test_a_job_runs_exactly_once_however_often_the_engine_is_killed_and_its_status_refused(
    tmp_path: Path,
) -> None:
    figures = Counter[str]()
    with ThreadPoolExecutor(WORKERS) as pool:
        seeds = range(FIRST, FIRST + SEEDS)
        found = pool.map(lambda seed: _play(seed, tmp_path / str(seed), figures), seeds)
    failures = [failure for failure in found if failure]
    assert not failures, "\n".join(failures)
    print(f"{SEEDS} seeds: {dict(figures)}")  # noqa: T201 - for `make soak`


def _play(seed: int, folder: Path, figures: Counter[str]) -> str:
    """What went wrong with this seed, and how to see it again; "" if nothing did."""
    chance = random.Random(f"kills-{seed}")
    faults = [*of_objects(random_faults(chance), chance), *of_objects((), chance)]
    folder.mkdir()
    with Sandbox(seed=seed) as sandbox:
        troubles = troubles_by_lot(sandbox, prepare(sandbox), chance, objects=True)
        engine = replace(engine_on(sandbox, folder), objects=True)
        engine.environment["ENGINE_SOURCE"] = NAMESPACE
        for name in SPECS:
            engine.apply(json.loads(document(name)))
        for fault in faults:
            sandbox.faults.add(fault)
        try:
            with gates_lifted(sandbox, engine.kubeconfig, chance):
                with playing(troubles):
                    kills = _kill_until_all_are_over(sandbox, engine, chance)
                _see_to_the_end(engine)
            assert_ended(sandbox)
            sandbox.faults.clear()
            sandbox.requests.clear()
            again = engine.reconcile(ends=None)
            assert not any(job["changed"] for job in again.result["jobs"])
            assert sandbox.requests.writes == []
        except Exception as error:  # noqa: BLE001 - every seed is to be told, with its faults
            return _report(seed, sandbox, faults, troubles, error)
        finally:
            engine.kill_what_runs()
        hits = sum(sandbox.faults.hits(fault) for fault in faults)
    figures.update({"kills": kills, "faults": hits, **{one.name: 1 for one in troubles}})
    return ""


def _kill_until_all_are_over(sandbox: Sandbox, engine: Engine, chance: random.Random) -> int:
    """How many engines were killed in the middle, of those that stay and of the others.

    Often there are two of them: the version of the status alone keeps them apart.
    """
    kills = 0
    while not _are_over(sandbox) and kills < MOST_KILLS:
        with ExitStack() as stack:
            lives = [_begin(engine, stack, chance) for _ in range(chance.choice((1, 1, 2)))]
            time.sleep(chance.uniform(0.1, 1.5))
            for process, end in lives:
                kills += process.poll() is None
                end()
    return kills


def _begin(
    engine: Engine, stack: ExitStack, chance: random.Random
) -> tuple[Process, Callable[[], None]]:
    """A process, and what kills it."""
    threads = str(chance.choice((1, 2, 8)))
    if chance.random() < 0.5:
        process = engine.start("--concurrency", threads)
        return process, partial(kill, process)
    options = ("--leader-elect", "--lease-duration", "1s", "--concurrency", threads)
    staying = stack.enter_context(EngineProcess(engine, *options, ready=False))
    staying.wait_for_line("served at")
    return staying.process, staying.kill


def _are_over(sandbox: Sandbox) -> bool:
    ended = ("Succeeded", "Failed")
    return sum(record["state"] in ended for _, record in records(sandbox)) == len(SPECS)


def _see_to_the_end(engine: Engine) -> None:
    for _ in range(MOST_TRIES):
        last = engine.reconcile(ends=None)
        if last.stdout and not any(job.get("error") for job in last.result["jobs"]):
            return
    raise AssertionError(last.stderr[-2000:])


def _report(
    seed: int,
    sandbox: Sandbox,
    faults: list[Fault],
    troubles: list[Trouble],
    error: Exception,
) -> str:
    seen = [f"{sandbox.faults.hits(fault)}x {fault}" for fault in faults]
    seen += [f"{trouble.name} for {trouble.phases} s" for trouble in troubles]
    lines = "\n    ".join([f"{type(error).__name__}: {error}", *seen])
    return f"ENGINE_CAMPAIGN_SEED={seed} ENGINE_SANDBOX_KILL_SEEDS=1\n    {lines}"
