"""Many jobs at once."""

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import COMMAND, Engine

pytestmark = pytest.mark.only("sandbox")

JOBS = 600
"""More than one page of a list."""


def test_hundreds_of_jobs_all_run_once_and_the_second_run_reads_a_handful_of_pages(
    engine: Engine, sandbox: Sandbox
) -> None:
    for number in range(JOBS):
        engine.spec(f"job-{number}", script="true")
    run = engine.reconcile(ends=0)
    assert {job["state"] for job in run.result["jobs"]} == {"Succeeded"}
    assert len(sandbox.objects("pods", NAMESPACE)) == JOBS
    created = [entry.name for entry in sandbox.requests.where("create", "pods")]
    assert len(created) == JOBS
    sandbox.requests.clear()
    again = engine.reconcile(ends=0)
    assert not any(job["changed"] for job in again.result["jobs"])
    assert sandbox.requests.writes == []
    assert len(sandbox.requests) <= 10


def test_a_soft_limit_of_open_files_keeps_no_namespace_from_being_watched(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.command = ["sh", "-c", 'ulimit -Sn 40; exec "$@"', "sh", *COMMAND]
    names = [f"team-{number}" for number in range(40)]
    for engine.namespace in names:
        sandbox.namespace(engine.namespace)
        engine.spec("job", script="true", file=f"{engine.namespace}.yaml")
    run = engine.reconcile(ends=0)
    assert {job["namespace"] for job in run.result["jobs"]} == set(names)
    assert "open files" not in run.stderr
