"""JobSpec objects through kubectl alone: it applies them, and waits until they are over."""

import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.quota import set_quota
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.job_specs import JOB_SPECS, JobSpecs

MANY = int(os.environ.get("ENGINE_OBJECT_JOBS", "300"))
pytestmark = [pytest.mark.only("real"), pytest.mark.timeout(300 + 4 * MANY)]
ROOM = 40
"""Pods that a quota lets in at once: a node that is to start hundreds starts none for minutes."""
WAIT = ("wait", "--for=condition=Finished", "--timeout=120s")


class Kubectl:
    """kubectl in the test's namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        kubeconfig = f"--kubeconfig={cluster.kubeconfig}"
        self._command = [str(cluster.kubectl), kubeconfig, f"--namespace={namespace}"]

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def kubectl(cluster: Cluster, target: ClusterUnderTest) -> Kubectl:
    return Kubectl(cluster, target.namespace)


@pytest.mark.parametrize(("ends", "state"), [(0, "Succeeded"), (3, "Failed")])
def test_wait_returns_when_a_job_is_over_either_way_and_after_an_edit_once_the_new_run_is(
    engine: Engine, specs: JobSpecs, staying: EngineProcess, kubectl: Kubectl, ends: int, state: str
) -> None:
    engine.spec("build", script=f"sleep 1; exit {ends}")
    kubectl(*WAIT, "jobspec/build")
    first = specs.status("build")
    assert (first["state"], first["observedGeneration"]) == (state, 1)

    specs.patch("build", script=f"sleep 2; exit {ends}")
    kubectl(*WAIT, "jobspec/build")
    second = specs.status("build")
    assert (second["state"], second["observedGeneration"]) == (state, 2)
    assert second["runHash"] != first["runHash"]

    specs.patch("build", hold=True)
    kubectl(*WAIT, "jobspec/build")
    third = specs.status("build")
    assert (third["runHash"], third["observedGeneration"]) == (second["runHash"], 3)


@pytest.mark.soak
def test_many_objects_that_are_applied_at_once_end_and_the_second_apply_does_nothing(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest, kubectl: Kubectl, tmp_path: Path
) -> None:
    names = [f"job-{number}" for number in range(MANY)]
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        _document(engine, name, script="true", resources={"requests": {"cpu": "1m"}})
        for name in names
    ]}))  # fmt: skip
    apply = ("apply", "--server-side", "-f", str(file))
    set_quota(specs.api, specs.namespace, {"pods": ROOM})
    target.forget_requests()
    with EngineProcess(engine) as staying:
        began = time.monotonic()
        kubectl(*apply)
        applied = time.monotonic() - began
        deadline = began + 60 + 3 * MANY
        while (states := _states(specs)) != {"Succeeded": MANY}:
            assert time.monotonic() < deadline, (states, staying.text)
            time.sleep(1)
        took = time.monotonic() - began
        writes = Counter(one[2] for one in target.writes() if one[1].startswith("jobspecs"))
        assert set(writes) == set(names)
        before = _versions(specs)
        target.forget_requests()
        kubectl(*apply)
        engine.spec("last", script="true")
        specs.ended("last")
        assert not [one for one in target.writes() if one[2].startswith("job-")]
        after = _versions(specs)
        assert {name: after[name] for name in before} == before
        assert len(specs.api.list("pods", specs.namespace)) == MANY + 1
        assert staying.stop().code == 0
    print(  # noqa: T201 - for `make soak`
        f"{MANY} objects: applied in {applied:.1f} s, over after {took:.0f} s, "
        f"{dict(Counter(writes.values()))} status writes"
    )


def _document(engine: Engine, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": name, "namespace": engine.namespace},
        "spec": {"image": engine.image, **spec},
    }


def _states(specs: JobSpecs) -> Counter[str]:
    found = specs.api.list(JOB_SPECS, specs.namespace)
    return Counter(one.get("status", {}).get("state", "") for one in found)


def _versions(specs: JobSpecs) -> dict[str, str]:
    found = specs.api.list(JOB_SPECS, specs.namespace)
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in found}
