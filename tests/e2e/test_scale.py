"""Many jobs at once."""

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine

pytestmark = pytest.mark.only("sandbox")


def test_a_thousand_jobs_all_run_once_and_the_second_run_reads_a_handful_of_pages(
    engine: Engine, sandbox: Sandbox
) -> None:
    for number in range(1000):
        engine.spec(f"job-{number}", script="true")
    run = engine.reconcile(ends=0)
    assert {job["state"] for job in run.result["jobs"]} == {"Succeeded"}
    assert len(sandbox.objects("pods", NAMESPACE)) == 1000
    created = [entry.name for entry in sandbox.requests.where("create", "pods")]
    assert len(created) == 1000
    sandbox.requests.clear()
    again = engine.reconcile(ends=0)
    assert not any(job["changed"] for job in again.result["jobs"])
    assert sandbox.requests.writes == []
    assert len(sandbox.requests) <= 10
