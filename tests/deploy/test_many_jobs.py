"""Many jobs through the engine in its pod: what it takes, beside the chart's limits."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.campaign.batches import bound_pods
from tests.cluster.cgroups import ROOT
from tests.cluster.cluster import Cluster
from tests.cluster.helm import CHART
from tests.cluster.quota import set_quota
from tests.deploy.release import Release, attempts, engine_values, spec_of
from tests.support.api import Api, Object
from tests.support.engine import Engine
from tests.support.objects import Objects

JOBS = int(os.environ.get("ENGINE_POD_JOBS", "40"))
pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(400 + 6 * JOBS)]

MEBIBYTE = 1 << 20
ROOM = 40
"""Pods that a quota lets in at once: a node that is to start hundreds starts none for minutes."""


def test_all_jobs_of_a_config_map_run_once_within_the_limits_of_the_chart(
    release: Release, repository: str, engine: Engine, api: Api, jobs: str, cluster: Cluster
) -> None:
    api.create("namespaces", {"metadata": {"name": jobs}})
    set_quota(api, jobs, {"pods": ROOM})
    begun, at = cluster.audit_position(), time.monotonic()
    names = [f"job-{number}" for number in range(JOBS)]
    files = {name: spec_of(name, engine, "true") for name in names}
    values = engine_values(repository, jobs, **files)
    values["engine"]["replicas"] = 1
    values["namespaces"]["create"] = []
    release.helm("install", values)
    expected = dict.fromkeys(names, ("Succeeded", 1))

    def over() -> bool:
        records = api.list("configmaps", jobs, labels="jobs.engine/component=record")
        return sum('"finishedAt"' in one["data"]["record.json"] for one in records) == JOBS

    api.wait(over, f"end of {JOBS} jobs", 300 + 5 * JOBS, every=1)
    took = time.monotonic() - at
    (pod,) = [one for one in api.list("pods", release.namespace) if one["status"].get("podIP")]
    (status,) = pod["status"]["containerStatuses"]
    assert status["restartCount"] == 0
    limits = YAML(typ="safe").load((CHART / "values.yaml").read_text())["engine"]["resources"]
    limit = int(limits["limits"]["memory"].removesuffix("Mi"))
    peak = peak_of(status["containerID"].rpartition("/")[2]) / MEBIBYTE
    metrics = metrics_of(api, pod)
    resident = metrics["process_resident_memory_bytes"] / MEBIBYTE
    processor = metrics["process_cpu_seconds_total"]
    told = f"{JOBS} jobs in {took:.0f} s: {peak:.0f} MiB at most in the container's cgroup"
    told += f", {resident:.0f} MiB resident at the end, {processor:.1f} s of CPU"
    told += f", {metrics['engine_api_requests_total']:.0f} requests"
    print(told)  # noqa: T201 - figures for docs/operations.md
    assert attempts(api, jobs) == expected
    bound = bound_pods(Objects(api, jobs), cluster, begun)
    assert Counter(name.rpartition("-")[2] for name in bound) == {"1": JOBS}
    assert set(bound.values()) == {1}
    assert max(peak, resident) < limit
    assert processor / took < 1, "of one processor"


def peak_of(container: str) -> int:
    """Bytes; what the kernel holds of files for the container is in it."""
    (folder,) = {path for path in folders_of(container) if "memory" in str(path) or is_unified()}
    for name in ("memory.peak", "memory.max_usage_in_bytes"):
        if (folder / name).exists():
            return int((folder / name).read_text())
    raise FileNotFoundError(folder)


def is_unified() -> bool:
    return (ROOT / "cgroup.controllers").exists()


def folders_of(container: str) -> Iterator[Path]:
    base = ROOT if is_unified() else ROOT / "memory"
    for found, folders, _ in os.walk(base):
        for folder in folders:
            if container in folder:
                yield Path(found, folder)


def metrics_of(api: Api, pod: Object) -> dict[str, float]:
    """Of series without labels."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}:8080/proxy/metrics"
    text = api.client.get(path).data.decode()
    rows = (line.split() for line in text.splitlines() if line and line[0] != "#")
    return {row[0]: float(row[1]) for row in rows if "{" not in row[0]}
