"""A CI whose jobs have names of their own, each pipeline another `--once`, for forty days.

ENGINE_PIPELINE_JOBS is how many jobs there are in all: 120, and 2,000 in `make soak`.
"""

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine

JOBS = int(os.environ.get("ENGINE_PIPELINE_JOBS", "120"))
DAYS, KEPT = 40, timedelta(days=30)
PIPELINES = DAYS * (1 if JOBS < 1000 else 2)
EVERY = timedelta(days=DAYS) / PIPELINES

pytestmark = pytest.mark.timeout(300 + JOBS)


def test_after_forty_days_of_pipelines_there_are_records_of_the_last_thirty(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.environment["ENGINE_SOURCE"] = "web"
    begun: dict[str, datetime] = {}
    missed: dict[str, datetime] = {}
    most = 0
    for pipeline in range(PIPELINES):
        shutil.rmtree(engine.folder)
        now = datetime.fromtimestamp(sandbox.clock.now(), UTC)
        missed |= {job: now for job in begun if job not in missed}
        for number in range(JOBS // PIPELINES):
            begun[engine.spec(f"job-{pipeline}-{number}", script="true")] = now
        run = engine.reconcile(ends=0)
        assert all(job["changed"] for job in run.result["jobs"])
        left = _records(sandbox)
        recent = {job for job in begun if now - missed.get(job, now) <= KEPT}
        assert recent <= left <= {job for job in begun if now - begun[job] <= KEPT + EVERY}
        most = max(most, len(left))
        sandbox.clock.advance(EVERY.total_seconds())
    assert len(begun) == JOBS // PIPELINES * PIPELINES
    assert most <= len(begun) * (KEPT + 2 * EVERY) / timedelta(days=DAYS)
    assert len(sandbox.objects("configmaps", NAMESPACE)) <= most + 2 * JOBS // PIPELINES


def _records(sandbox: Sandbox) -> set[str]:
    names = (item["metadata"]["name"] for item in sandbox.objects("configmaps", NAMESPACE))
    return {name.removesuffix(".record") for name in names if name.endswith(".record")}
