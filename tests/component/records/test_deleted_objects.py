"""A JobSpec object that is deleted is no job, however late the specs are read again."""

from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from engine.specdir import watch
from engine.telemetry.events import ErrorReported
from tests.support.api import Api
from tests.support.client import eventually
from tests.support.clusters import NAMESPACE
from tests.support.in_process_manager import InProcessManager
from tests.support.job_specs import JOB_SPECS

SPEC = {
    "apiVersion": "jobs.engine/v1alpha1",
    "kind": "JobSpec",
    "metadata": {"name": "build"},
    "spec": {"image": "busybox", "script": "true"},
}


@pytest.mark.parametrize("pod", ["there", "pruned"])
def test_no_pod_is_made_or_refused_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pod: str
) -> None:
    with Sandbox() as sandbox:
        sandbox.namespace(NAMESPACE)
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        api = Api.from_kubeconfig(kubeconfig)
        api.create(JOB_SPECS, SPEC, NAMESPACE)
        with InProcessManager(kubeconfig, None) as running:
            eventually(lambda: _state(api) == "Succeeded")
            if pod == "pruned":
                (found,) = sandbox.objects("pods", NAMESPACE)
                api.delete("pods", found["metadata"]["name"], NAMESPACE)
                eventually(lambda: not running.manager.controller.informers.all_pods())
            monkeypatch.setattr(watch, "QUIET_SECONDS", 3.0)
            monkeypatch.setattr(watch, "MAX_DELAY_SECONDS", 3.0)
            sandbox.requests.clear()
            api.delete(JOB_SPECS, "build", NAMESPACE)
            eventually(lambda: not running.manager.controller.store.desired)
            of_pods = [one for one in sandbox.requests.writes if one.resource == "pods"]
            assert "create" not in {one.verb for one in of_pods}
            assert not [one for one in running.events if isinstance(one, ErrorReported)]


def _state(api: Api) -> object:
    return api.get(JOB_SPECS, "build", NAMESPACE).get("status", {}).get("state")
