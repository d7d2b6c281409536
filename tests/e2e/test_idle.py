"""Many finished jobs, and nothing to do: what an engine that stays costs then."""

import os
import time

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.fault_campaign import records
from tests.support.processes import cpu_seconds

pytestmark = pytest.mark.only("sandbox")

SECONDS = float(os.environ.get("ENGINE_SOAK_IDLE", "10"))
JOBS = 1000 if SECONDS >= 60 else 300
LEASE = 15.0
MOST_CPU = 0.05
LEASE_ALONE = {("list", "leases"), ("update", "leases")}


@pytest.mark.timeout(300 + int(SECONDS))
def test_with_hundreds_of_finished_jobs_only_the_lease_is_written_and_nothing_listed(
    engine: Engine, sandbox: Sandbox
) -> None:
    for number in range(JOBS):
        engine.spec(f"job-{number}", script="true")
    arguments = ("--prune", "--prune-interval", "5s", "--lease-duration", f"{LEASE:.0f}s")
    with EngineProcess(engine, *arguments) as staying:
        _wait_until_all_are_over(sandbox)
        _wait_until_quiet(sandbox)
        sandbox.requests.clear()
        began, spent = time.monotonic(), cpu_seconds(staying.process.pid)
        time.sleep(SECONDS)
        asked = sandbox.requests.counts
        took = time.monotonic() - began
        share = (cpu_seconds(staying.process.pid) - spent) / took
        told = staying.text.count("\n")
    assert set(asked) == LEASE_ALONE, asked
    assert abs(asked["update", "leases"] - took / (LEASE / 3)) <= 1
    assert len(sandbox.objects("pods", NAMESPACE)) == JOBS
    print(f"{JOBS} finished jobs: {share:.2%} of a core, {told} lines")  # noqa: T201 - a figure
    assert share < MOST_CPU


def _wait_until_all_are_over(sandbox: Sandbox) -> None:
    deadline = time.monotonic() + 200
    while True:
        found = [record["state"] for _, record in records(sandbox)]
        if found == ["Succeeded"] * JOBS:
            return
        assert time.monotonic() < deadline, f"{len(found)} records"
        time.sleep(0.5)


def _wait_until_quiet(sandbox: Sandbox) -> None:
    """Until the last job's end was heard of: for three seconds nothing is asked but the Lease."""
    deadline = time.monotonic() + 60
    while True:
        sandbox.requests.clear()
        time.sleep(3)
        if set(sandbox.requests.counts) <= LEASE_ALONE:
            return
        assert time.monotonic() < deadline, sandbox.requests.counts
