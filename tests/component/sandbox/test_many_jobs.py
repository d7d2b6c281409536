"""Many jobs at once: none is lost, and nothing of them is left. Benchmarks say how fast."""

from __future__ import annotations

import itertools
import threading

from engine.sandbox import Clock, Sandbox
from engine.sandbox.furnishing import ROOT_CERTIFICATE
from tests.support.client import JSON_PATCH, eventually
from tests.support.sandbox_namespace import GATE, Namespace, container

JOBS = 300


def run_job(ci: Namespace, name: str) -> None:
    """The five writes of one job: gated Pod, Secret, ConfigMap, record, gate."""
    spec = {
        "restartPolicy": "Never",
        "schedulingGates": [{"name": GATE}],
        "containers": [container(envFrom=[{"secretRef": {"name": name}}])],
    }
    made = ci.client.post(ci.path("pods"), {"metadata": {"name": name}, "spec": spec})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": made.uid}
    meta = {"name": name, "ownerReferences": [owner]}
    ci.client.post(ci.path("secrets"), {"metadata": meta, "data": {"A": "YQ=="}})
    ci.client.post(ci.path("configmaps"), {"metadata": meta, "data": {"a": "1"}})
    ci.client.post(ci.path("configmaps"), {"metadata": {"name": f"{name}-record"}})
    steps = [{"op": "remove", "path": "/spec/schedulingGates"}]
    assert ci.client.patch(ci.path("pods", name), steps, JSON_PATCH).code == 200


def test_hundreds_of_jobs_go_through_and_leave_nothing() -> None:
    with Sandbox(clock=Clock(speed=1)) as sandbox:
        ci = Namespace.of(sandbox)
        names = itertools.islice((f"job-{n}" for n in itertools.count()), JOBS)
        lock = threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    name = next(names, None)
                if name is None:
                    return
                run_job(ci, name)

        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        eventually(
            lambda: all(p["status"]["phase"] == "Succeeded" for p in sandbox.objects("pods", "ci")),
            150,
        )
        assert len(sandbox.objects("pods", "ci")) == JOBS
        ci.client.delete(ci.path("pods"))
        eventually(lambda: not sandbox.objects("secrets", "ci"))
        left = [item["metadata"]["name"] for item in sandbox.objects("configmaps", "ci")]
        assert len(left) == JOBS + 1
        assert ROOT_CERTIFICATE in left
