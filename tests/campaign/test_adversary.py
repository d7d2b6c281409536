"""An author and a tenant of ill will keep no good job from running, once and soon.

ENGINE_ADVERSARY_SECONDS is for how long: 15 s, an hour in `make soak`, where how soon a good job
starts is held to two seconds. The engine has 512 MiB.
"""

import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from engine.sandbox import Run, Sandbox
from engine.sandbox.request_log import LoggedRequest
from engine.sandbox.store import Change
from tests.campaign.adversary import OURS, Adversary
from tests.campaign.test_hostile_files import probed
from tests.support.bounded import COMMAND, LIMIT_MIB, peak_mib
from tests.support.clusters import NAMESPACE, engine_on
from tests.support.engine_process import EngineProcess

SECONDS = float(os.environ.get("ENGINE_ADVERSARY_SECONDS", "15"))
GOOD = 200 if SECONDS >= 300 else 30
SEED = int(os.environ.get("ENGINE_SOAK_SEED", "25"))
MOVES_A_SECOND = 8.0
BUDGET = 2.0 if SECONDS >= 300 else 60.0
"""Seconds from when a job could start to its pod; beside other tests a machine has no own time."""
LEASES = "engine-system"

pytestmark = pytest.mark.timeout(SECONDS + 300)


class Witness:
    """Which pods good jobs had, and what the engine wrote that isn't its own."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.started: Counter[str] = Counter()
        """How many pods each good job had."""
        self.at: dict[str, float] = {}
        self.touched: list[LoggedRequest] = []
        sandbox.context.storage.listen(self._on_change)
        self._log = sandbox.requests

    def _on_change(self, change: Change) -> None:
        name = change.entry.obj["metadata"]["name"]
        if change.type == "ADDED" and change.entry.kind.kind == "Pod" and name.startswith("good-"):
            job = name.rsplit("-", 2)[0]
            self.started[job] += 1
            self.at.setdefault(job, time.monotonic())

    def read(self) -> None:
        """Take in what was asked since. A job of the adversary's has pods of its own."""
        asked = [*self._log]
        self._log.clear()
        foreign = (f"{OURS}-foreign", f"{OURS}-large", f"{OURS}-pod")
        self.touched += (
            one
            for one in asked
            if one.user_agent.startswith("engine/")
            and one.is_write
            and one.resource != "events"
            and (one.name.startswith(foreign) or one.namespace not in (NAMESPACE, LEASES))
            and not one.name.endswith(".record")
        )


def test_an_author_and_a_tenant_of_ill_will_keep_no_good_job_from_running_once_and_soon(
    tmp_path: Path,
) -> None:
    chance = random.Random(SEED)
    with Sandbox(seed=SEED) as sandbox:
        sandbox.node.will(Run(duration=0.1), pod="*")
        sandbox.namespace(LEASES)
        engine = engine_on(sandbox, tmp_path)
        engine.command = COMMAND
        engine.environment |= {
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "ENGINE_SOURCE": NAMESPACE,
        }
        adversary, witness = Adversary(sandbox, engine, chance), Witness(sandbox)
        could: dict[str, float] = {}
        moves: Counter[str] = Counter()
        arguments = ("--prune", "--yes", "--prune-interval", "2s", "--lease-duration", "15s", "-v")
        with (
            EngineProcess(engine, *arguments, "--lease-namespace", LEASES) as staying,
            probed(staying) as refused,
        ):
            began = time.monotonic()
            while (now := time.monotonic()) < began + SECONDS:
                was_full = adversary.is_full
                moves[adversary.step()] += 1
                if was_full or adversary.is_full:
                    # A job that waits could start only after this.
                    waiting = could.keys() - witness.at.keys()
                    could.update(dict.fromkeys(waiting, time.monotonic()))
                if len(could) < GOOD * (now - began) / SECONDS:
                    name = engine.spec(f"good-{len(could)}", script="true")
                    could[name] = time.monotonic()
                witness.read()
                assert staying.process.poll() is None, staying.text[-3000:]
                time.sleep(1 / MOVES_A_SECOND)
            adversary.relent()
            could.update(dict.fromkeys(could.keys() - witness.at.keys(), time.monotonic()))
            wait_until_over(sandbox, could.keys(), staying)
            witness.read()
            peak, answers = peak_mib(staying.process.pid), [*refused]
            stopped = staying.stop(signal.SIGTERM)
    delays = sorted(witness.at[job] - since for job, since in could.items())
    print(  # noqa: T201 - for `make soak`
        f"\n{adversary.count} moves {moves}\n{len(could)} good jobs, from when each could start: "
        f"median {statistics.median(delays):.2f} s, longest {delays[-1]:.2f} s; peak {peak:.0f} MiB"
    )
    assert witness.started == dict.fromkeys(could, 1), "every good job runs once"
    assert witness.touched == [], "nothing that isn't the engine's is touched"
    assert answers == [], "probes answer, and well"
    assert peak < LIMIT_MIB
    defects = [n for n, line in enumerate(stopped.lines) if "internal error" in line]
    assert ["\n".join(stopped.lines[at - 5 : at + 40]) for at in defects] == []
    assert stopped.code == 0, stopped.stderr[-3000:]
    assert delays[-1] < BUDGET, delays


def wait_until_over(sandbox: Sandbox, jobs: Collection[str], staying: EngineProcess) -> None:
    """Until the record of each says Succeeded."""
    deadline = time.monotonic() + 120
    left = {*jobs}
    while left:
        for record in sandbox.objects("configmaps", NAMESPACE):
            name = record["metadata"]["name"].removesuffix(".record")
            if name in left and '"state":"Succeeded"' in record["data"]["record.json"]:
                left.discard(name)
        assert time.monotonic() < deadline, f"{sorted(left)}\n{staying.text[-3000:]}"
        time.sleep(0.2)
