"""A namespace that the specs name for the first time is read, and its jobs begin at once."""

from pathlib import Path

import pytest

from engine.reconcile import controller
from engine.sandbox import Sandbox
from tests.support.client import eventually
from tests.support.clusters import NAMESPACE
from tests.support.in_process_manager import InProcessManager
from tests.unit.builders import write

SPEC = """\
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata: {name: build, namespace: %s}
spec: {image: busybox, script: "true"}
"""


def test_its_first_job_waits_for_no_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "specs"
    write(folder, "first.yaml", SPEC % NAMESPACE)
    with Sandbox() as sandbox:
        sandbox.namespace(NAMESPACE)
        sandbox.namespace("late")
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        with InProcessManager(kubeconfig, folder) as running:
            eventually(lambda: running.manager.controller.informers.is_ready)
            monkeypatch.setattr(controller, "_TICK", 20.0)
            eventually(lambda: bool(sandbox.objects("pods", NAMESPACE)))
            write(folder, "late.yaml", SPEC % "late")
            eventually(lambda: bool(sandbox.objects("pods", "late")), 15)
