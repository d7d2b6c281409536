"""Engines that stay are killed at random instants while files, or objects, come and change.

One alone, and one of three that share the source, so that its jobs go to the others. One of three
is also stopped for longer than its Lease lasts, and goes on, or is killed before it can.

Judged by what the scheduler gave to the node: each pod once, whatever the engine said of itself.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.campaign.batches import (
    CHANGES,
    JOBS_IN_A_BATCH,
    assert_ended_as_specified,
    assert_nothing_left,
    bound_pods,
    outcomes_of,
    write_job,
)
from tests.campaign.troubles import Troubles
from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.cluster.node import Node
from tests.support.definitions import install_definitions
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess, Pauses
from tests.support.job_specs import JOB_SPECS
from tests.support.objects import Objects

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(3000)]

KILLS = int(os.environ.get("ENGINE_SOAK_STAYING_KILLS", "6"))
SEED = int(os.environ.get("ENGINE_SOAK_SEED", "21"))
ASIDE = "../aside"
LEASE = 1.0
LONGEST_PAUSE = 5.0


class Specs:
    """The batch's specs: some are there at once, one after the other is moved in or changed.

    One is changed only once its job has a record, so that the change is a new run.
    """

    def __init__(
        self, engine: Engine, objects: Objects, images: Images, chance: random.Random
    ) -> None:
        self._engine = engine
        self._objects = objects
        self._images = images
        self._chance = chance
        self._waiting: list[Callable[[], None]] = []
        self._to_change: list[str] = []
        self.names: list[str] = []
        self.changed: list[str] = []

    def write_batch(self, batch: int) -> None:
        for number in range(JOBS_IN_A_BATCH):
            add = partial(self._add, batch, number)
            if number < JOBS_IN_A_BATCH // 2:
                add()
            else:
                self._waiting.append(add)
        changes = f"{CHANGES}-{batch}"
        self.names.append(self._engine.spec(changes, script="sleep 0.5"))
        self._to_change.append(changes)

    def _add(self, batch: int, number: int) -> None:
        """A file is written aside, and moved in."""
        file = f"{batch}-{number}.yaml"
        name = write_job(self._engine, self._images, batch, number, f"{ASIDE}/{file}")
        if not self._engine.objects:
            (self._engine.folder / ASIDE / file).rename(self._engine.folder / file)
        self.names.append(name)

    @property
    def is_done(self) -> bool:
        return not self._waiting and not self._to_change

    def touch_one(self) -> None:
        """Add one, or change one that is there."""
        if self._waiting and (not self._to_change or self._chance.random() < 0.8):
            self._waiting.pop(0)()
        elif self._to_change and self._has_record(self._to_change[0]):
            name = self._to_change.pop(0)
            self._engine.spec(name, script="sleep 0.5 # changed")
            self.changed.append(name)

    def _has_record(self, name: str) -> bool:
        api, namespace = self._objects.api, self._objects.namespace
        if self._engine.objects:
            return "record" in api.get(JOB_SPECS, name, namespace)["status"]
        return api.find("configmaps", f"{name}.record", namespace) is not None


@pytest.mark.parametrize(
    ("source", "engines"),
    [
        ("files", 1),
        pytest.param("files", 3, marks=pytest.mark.soak),
        pytest.param("objects", 1, marks=pytest.mark.soak),
        pytest.param("objects", 3, marks=pytest.mark.soak),
    ],
)
def test_a_job_runs_exactly_once_however_often_an_engine_that_stays_is_killed(
    source: str,
    engines: int,
    engine: Engine,
    objects: Objects,
    cluster: Cluster,
    images: Images,
    second_node: Node,
    tmp_path: Path,
) -> None:
    if source == "objects":
        install_definitions(objects.api.client)
        engine = replace(engine, objects=True)
    chance = random.Random(SEED)
    before = cluster.audit_position()
    specs = Specs(replace(engine), objects, images, chance)
    kills = stalls = batches = 0
    pauses = Pauses()
    troubled = Troubles(engine, objects, cluster, second_node, chance, tmp_path)
    with troubled as troubles, ExitStack() as stack:

        def begin() -> EngineProcess:
            count = str(chance.choice((1, 2, 8)))
            arguments = ("--leader-elect", "--lease-duration", f"{LEASE}s", "--concurrency", count)
            return stack.enter_context(EngineProcess(engine, *arguments, ready=False))

        staying = [begin() for _ in range(engines - 1)]
        while kills < KILLS:
            batches += 1
            specs.write_batch(batches)
            while not (specs.is_done and _is_over(engine, specs)):
                troubles.change()
                if staying and chance.random() < 0.5:
                    pauses.stop(chance.choice(staying), chance.uniform(LEASE, LONGEST_PAUSE))
                    stalls += 1
                staying.append(begin())
                _live_for_a_while(staying[-1], specs, chance, pauses)
                victim = staying.pop(chance.randrange(len(staying)))
                assert victim.process.poll() is None, victim.text
                victim.kill()
                kills += 1
        pauses.end(all_of_them=True)
        troubles.end()
        for one in staying:
            assert one.stop().code == 0
        with EngineProcess(engine) as last:
            time.sleep(1)
            assert last.stop().code == 0
            assert "Starting" not in last.text
    jobs = engine.status()
    assert set(jobs) == set(specs.names)
    assert_ended_as_specified(jobs)
    bound = bound_pods(objects, cluster, before)
    _assert_once(jobs, specs, bound)
    assert_nothing_left(objects, jobs)
    print(  # noqa: T201 - for `make soak`
        f"{kills} kills, {stalls} stalls, {len(jobs)} jobs, {len(bound)} pods, "
        f"{dict(outcomes_of(jobs))}, {dict(Counter(troubles.log))}"
    )


def _live_for_a_while(
    staying: EngineProcess, specs: Specs, chance: random.Random, pauses: Pauses
) -> None:
    end = time.monotonic() + chance.uniform(0.3, 2.5)
    if chance.random() < 0.6:
        staying.wait_for_line("leading")
        end = time.monotonic() + chance.uniform(0.0, 1.5)
    while (left := end - time.monotonic()) > 0:
        specs.touch_one()
        pauses.end()
        time.sleep(min(left, chance.uniform(0.05, 0.6)))


def _is_over(engine: Engine, specs: Specs) -> bool:
    jobs = engine.status()
    return all(
        name in jobs
        and jobs[name]["state"] in ("Succeeded", "Failed")
        and (name not in specs.changed or jobs[name]["history"])
        for name in specs.names
    )


def _assert_once(jobs: dict[str, dict[str, Any]], specs: Specs, bound: "Counter[str]") -> None:
    pods = Counter(attempt["pod"] for job in jobs.values() for attempt in job["attempts"])
    assert pods <= bound
    assert set(bound.values()) == {1}, bound.most_common(3)
    earlier = Counter(name.rpartition("-")[0].rpartition("-")[0] for name in bound - pods)
    assert set(earlier) <= set(specs.changed), "pods that no record tells of"
    assert set(earlier.values()) <= {1}
