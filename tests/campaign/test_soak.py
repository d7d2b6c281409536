"""Minutes of random files, faults and restarts on the sandbox, and memory that stays flat.

The first half restarts the engine all the time, the second keeps one; if that is for minutes
(ENGINE_SOAK_SECONDS, as in `make soak`), its memory is judged, too.
"""

import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.api.model import Config
from engine.sandbox import Fault, Run, Sandbox, ServerError
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from engine.specdir.load import load_specs
from engine.specdir.options import SpecOptions
from tests.campaign.random_files import RandomFiles
from tests.support.clusters import NAMESPACE, engine_on
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.fault_campaign import (
    faults_of_one_that_stays,
    prepare,
    random_faults,
    records,
)
from tests.support.ownership import Unowned
from tests.support.processes import resident_mib

SECONDS = float(os.environ.get("ENGINE_SOAK_SECONDS", "10"))
LONG_ENOUGH_FOR_MEMORY = 300.0
SEED = int(os.environ.get("ENGINE_SOAK_SEED", "22"))
STEPS_A_SECOND = 6.0
SAMPLES = 60
MOST_GROWTH_MIB = 8.0
DEFAULTS = """apiVersion: jobs.engine/v1alpha1
kind: JobDefaults
spec: {ttlAfterFinished: {success: 10s, failure: 20s}}
"""
ARGUMENTS = ("--prune", "--yes", "--prune-interval", "5s")

pytestmark = pytest.mark.timeout(SECONDS + 300)


@dataclass
class Figures:
    """What is told of a soak."""

    terms: int = 0
    kills: int = 0
    outages: int = 0
    faults: int = 0
    memory: list[float] = field(default_factory=list)


def test_a_soak_keeps_every_promise_and_memory_flat(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with Sandbox(seed=SEED) as sandbox:
        prepare(sandbox)
        sandbox.node.will(Run(duration=3.0), pod="long-*")
        engine = engine_on(sandbox, tmp_path)
        engine.write("defaults.yaml", DEFAULTS)
        unowned = Unowned(sandbox)
        files, figures = RandomFiles(engine, chance), Figures()
        weather = _weather(sandbox, chance, figures)
        end = time.monotonic() + SECONDS / 2
        while time.monotonic() < end:
            _one_life(engine, files, weather, chance, figures)
        with EngineProcess(engine, *ARGUMENTS, ready=False) as staying:
            _live(staying, files, weather, SECONDS / 2, figures)
            sandbox.faults.clear()
            files.mend_all()
            _wait_until_settled(sandbox, engine, files, staying)
            assert staying.stop().code == 0
        files.log += [f"    {line}" for line in staying.lines]
        (tmp_path / "log").write_text("\n".join(files.log))
        jobs = _assert_each_revision_ran_at_most_once(sandbox)
        _assert_nothing_is_left_of_removed_ones(sandbox, files)
        assert unowned.found == []
    print(f"\n{figures}\n{files.done}\n{jobs} revisions ran")  # noqa: T201 - for `make soak`
    if SECONDS >= LONG_ENOUGH_FOR_MEMORY:
        _assert_flat(figures.memory)


def _one_life(
    engine: Engine,
    files: RandomFiles,
    weather: Iterator[None],
    chance: random.Random,
    figures: Figures,
) -> None:
    with EngineProcess(engine, *ARGUMENTS, ready=False) as staying:
        _live(staying, files, weather, chance.uniform(1.0, 15.0))
        if chance.random() < 0.5:
            figures.kills += 1
            staying.kill()
        else:
            figures.terms += 1
            stopped = staying.stop(signal.SIGTERM)
            # Before its first word it has no handler yet, and has done nothing.
            assert stopped.code == 0 or (stopped.code, stopped.stderr) == (-signal.SIGTERM, "")
    files.log += [f"    {line}" for line in staying.lines]


def _live(
    staying: EngineProcess,
    files: RandomFiles,
    weather: Iterator[None],
    seconds: float,
    figures: Figures | None = None,
) -> None:
    """Let the engine see files and weather change; it never ends by itself."""
    end = time.monotonic() + seconds
    next_sample = time.monotonic()
    while (now := time.monotonic()) < end:
        files.step()
        next(weather)
        assert staying.process.poll() is None, staying.text[-2000:]
        if figures is not None and now >= next_sample:
            next_sample += seconds / SAMPLES
            figures.memory.append(round(resident_mib(staying.process.pid), 1))
        time.sleep(1 / STEPS_A_SECOND)


def _weather(sandbox: Sandbox, chance: random.Random, figures: Figures) -> Iterator[None]:
    """Faults come and go; at times the server is away altogether, or forgets the past."""
    while True:
        match chance.randrange(4):
            case 0:
                figures.outages += 1
                sandbox.faults.add(Fault(ServerError(503), times=None))
                sandbox.drop_watches()
                yield from _wait(chance.uniform(1.0, 6.0))
            case 1:
                sandbox.expire_watches()
            case _:
                for fault in (*random_faults(chance), *faults_of_one_that_stays(chance)):
                    figures.faults += 1
                    sandbox.faults.add(fault)
                yield from _wait(chance.uniform(2.0, 6.0))
        sandbox.faults.clear()
        yield from _wait(chance.uniform(2.0, 8.0))


def _wait(seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def _wait_until_settled(
    sandbox: Sandbox, engine: Engine, files: RandomFiles, staying: EngineProcess
) -> None:
    """Until every file's job is over in its current revision, and no other job is known."""
    jobs = load_specs(SpecOptions(paths=(str(engine.folder),), namespace=NAMESPACE), Config()).jobs
    wanted = {job.name: (job.spec_hash, _state_of(job.name)) for job in jobs}
    assert set(wanted) == files.names
    deadline = time.monotonic() + 120
    while True:
        found = {name: (record["specHash"], record["state"]) for name, record in records(sandbox)}
        if found == wanted:
            return
        differ = sorted(set(found.items()) ^ set(wanted.items()))
        assert time.monotonic() < deadline, f"{differ}\n{staying.text[-3000:]}"
        time.sleep(0.2)


def _assert_each_revision_ran_at_most_once(sandbox: Sandbox) -> int:
    """How many ran. A pod's name without its attempt's number tells job and revision."""
    started = Counter(
        event["involvedObject"]["name"].rpartition("-")[0]
        for event in sandbox.objects("events", NAMESPACE)
        if event["reason"] == "Started"
        and event["involvedObject"].get("fieldPath") == "spec.containers{main}"
        for _ in range(event.get("count", 1))
    )
    assert {name: count for name, count in started.items() if count > 1} == {}
    return len(started)


def _assert_nothing_is_left_of_removed_ones(sandbox: Sandbox, files: RandomFiles) -> None:
    sandbox.clock.settle()
    for kind in ("pods", "secrets", "configmaps"):
        for item in sandbox.objects(kind, NAMESPACE):
            if item["metadata"]["name"] == ROOT_CERTIFICATE:
                continue
            job = item["metadata"].get("labels", {}).get("jobs.engine/job")
            assert job in files.names, f"left behind: {kind}/{item['metadata']['name']}"


def _assert_flat(memory: list[float]) -> None:
    """From the second quarter to the last one there is no growth to speak of."""
    quarter = SAMPLES // 4
    assert len(memory) > 3 * quarter, "too short to tell anything of memory"
    early = statistics.median(memory[quarter : 2 * quarter])
    late = statistics.median(memory[-quarter:])
    assert late - early < MOST_GROWTH_MIB, memory


def _state_of(name: str) -> str:
    return "Failed" if name.startswith("fails-") else "Succeeded"
