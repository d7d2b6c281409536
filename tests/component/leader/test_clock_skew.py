"""Engines whose clocks differ by minutes share a source: none of its jobs runs twice."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from engine.sandbox import Run, Sandbox
from tests.component.leader.conftest import eventually
from tests.support.clusters import NAMESPACE
from tests.support.fault_campaign import records
from tests.support.in_process_manager import InProcessManager
from tests.support.ownership import Deeds

_SKEWS = [timedelta(minutes=minutes) for minutes in (-7, 0, 7)]
_JOBS = [f"job-{number}" for number in range(12)]


def test_jobs_that_move_between_clocks_that_differ_by_minutes_run_once_each(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """The engines come one after the other and go again, while all jobs run."""
    sandbox.namespace(NAMESPACE)
    sandbox.node.will(Run(duration=8.0), pod="*")
    kubeconfig, specs = sandbox.write_kubeconfig(tmp_path / "kubeconfig"), tmp_path / "specs"
    specs.mkdir()
    for job in _JOBS:
        spec = {"image": "registry.example/tool:1", "script": "true", "files": {"a": "b"}}
        document = {"metadata": {"name": job}, "spec": spec}
        kind = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobSpec"}
        (specs / f"{job}.yaml").write_text(json.dumps({**kind, **document}))
    deeds = Deeds(sandbox)

    def share(running: list[InProcessManager]) -> bool:
        owned = [job for one in running for job in _JOBS if one.owns(job)]
        return sorted(owned) == sorted(_JOBS) and all(map(_owns_any, running))

    with ExitStack() as last:
        running: list[InProcessManager] = []
        for skew in _SKEWS:
            engine = InProcessManager(kubeconfig, specs, lease_duration=1.0, shares=True, skew=skew)
            running.append(last.enter_context(engine))
            eventually(lambda: share(running))
        eventually(lambda: len(deeds.starts) == len(_JOBS))
        for engine in running[:2]:
            engine.manager.stop("it goes")
        eventually(lambda: share(running[2:]))
        eventually(lambda: _states(sandbox) == {"Succeeded"})
    assert {job: len(pods) for job, pods in deeds.starts.items()} == dict.fromkeys(_JOBS, 1)
    assert deeds.at_once == []
    assert deeds.not_ours == []


def _owns_any(engine: InProcessManager) -> bool:
    return any(map(engine.owns, _JOBS))


def _states(sandbox: Sandbox) -> set[str]:
    return {record["state"] for _, record in records(sandbox)}
