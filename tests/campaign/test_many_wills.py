"""Many processes read different folders of one source, and their leaders are paused and go on.

Each folder has a revision of its own of every job. For ENGINE_WILLS_SECONDS files change, pipelines
come beside the engines that stay, and processes are stopped for longer than a lease and continued.
Judged by what the API server stored: of a job starts at most one pod for each revision that was
asked for, and one more.
"""

import json
import os
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from engine.sandbox import Clock, Run, Sandbox
from tests.support.api import Api
from tests.support.client import eventually
from tests.support.clusters import NAMESPACE, engine_on
from tests.support.engine import Engine, Process
from tests.support.engine_process import EngineProcess, Pauses
from tests.support.ownership import Deeds, Unowned

SECONDS = float(os.environ.get("ENGINE_WILLS_SECONDS", "6"))
SEED = int(os.environ.get("ENGINE_WILLS_SEED", "31"))
PROCESSES = (2, 3, 10) if SECONDS >= 60 else (3,)
JOBS = ("build", "test", "lint")
MOST_PIPELINES = 2
LONGEST_PAUSE = 6.0
"""Seconds; a lease lasts two."""
STRANGER = "database-0"

pytestmark = pytest.mark.timeout(SECONDS + 900)


class Source:
    """Folders of one source, and what was asked for in them."""

    def __init__(self, engine: Engine) -> None:
        self.asked: Counter[str] = Counter()
        self._engine = engine
        self._numbers = count(1)

    def folder(self) -> Engine:
        """Another checkout, with a revision of its own of every job."""
        path = self._engine.folder.parent / f"checkout-{next(self._numbers)}"
        path.mkdir()
        made = replace(self._engine, folder=path, started=[])
        for job in JOBS:
            self.change(made, job)
        return made

    def change(self, engine: Engine, job: str) -> None:
        """Another revision of the job in this folder."""
        self.asked[job] += 1
        engine.spec(job, script="make", env={"REVISION": str(next(self._numbers))})


@pytest.mark.parametrize("processes", PROCESSES)
def test_each_process_asks_for_each_revision_once(tmp_path: Path, processes: int) -> None:
    chance = random.Random(SEED + processes)
    with Sandbox(seed=SEED, clock=Clock(speed=3.0)) as sandbox:
        sandbox.node.will(Run(duration=1.5), pod="*")
        first = engine_on(sandbox, tmp_path)
        first.environment["ENGINE_SOURCE"] = NAMESPACE
        api, deeds, unowned = (
            Api.from_kubeconfig(first.kubeconfig),
            Deeds(sandbox),
            Unowned(sandbox),
        )
        api.create("pods", stranger(first.image), NAMESPACE)
        source, pauses, pipelines = Source(first), Pauses(), list[Process]()
        ended: Counter[int] = Counter()
        with ExitStack() as stack:
            folders = [source.folder() for _ in range(processes)]
            staying = [
                stack.enter_context(EngineProcess(one, "--leader-elect", ready=False))
                for one in folders
            ]
            stack.callback(pauses.end, all_of_them=True)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                match chance.randrange(8):
                    case 0 | 1:
                        source.change(chance.choice(folders), chance.choice(JOBS))
                    case 2 | 3:
                        pauses.stop(chance.choice(staying), chance.uniform(0.2, LONGEST_PAUSE))
                    case 4 if len(pipelines) < MOST_PIPELINES:
                        pipelines.append(source.folder().start("--timeout", "10m"))
                    case _:
                        time.sleep(chance.uniform(0.05, 0.5))
                pauses.end()
                for done in [one for one in pipelines if one.poll() is not None]:
                    pipelines.remove(done)
                    done.communicate()
                    ended[done.wait()] += 1
            pauses.end(all_of_them=True)
            for left in pipelines:
                left.communicate(timeout=600)
                ended[left.wait()] += 1
            eventually(lambda: all_over(api), seconds=600)
        started = {job: len(deeds.starts[job]) for job in JOBS}
        figures = f"started {started}, asked {dict(source.asked)}, pipelines ended {dict(ended)}"
        print(f"{processes} processes, {SECONDS:.0f} s: {figures}")  # noqa: T201 - for `make soak`
        for job in JOBS:
            assert 0 < started[job] <= source.asked[job] + 1, (started, source.asked)
            assert len(set(deeds.starts[job])) == started[job], "a number was given twice"
        assert set(ended) <= {0, 5}, ended
        assert deeds.at_once == []
        assert deeds.not_ours == []
        assert unowned.found == []
        assert api.find("pods", STRANGER, NAMESPACE) is not None


def stranger(image: str) -> dict[str, object]:
    """Somebody else's pod with all labels that the engine's have."""
    labels = {
        "app.kubernetes.io/managed-by": "engine", "jobs.engine/job": "build",
        "jobs.engine/run": "0" * 8, "jobs.engine/attempt": "1", "jobs.engine/source": NAMESPACE,
    }  # fmt: skip
    metadata = {"name": STRANGER, "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "db", "image": image}]}}


def all_over(api: Api) -> bool:
    """Whether every job has a record of a run that is over, and no pod that isn't."""
    found = [api.find("configmaps", f"{job}.record", NAMESPACE) for job in JOBS]
    states = [json.loads(one["data"]["record.json"])["state"] for one in found if one]
    pods = [pod for pod in api.list("pods", NAMESPACE) if pod["metadata"]["name"] != STRANGER]
    return (
        len(states) == len(JOBS)
        and {*states} <= {"Succeeded", "Cancelled"}
        and all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods)
    )
