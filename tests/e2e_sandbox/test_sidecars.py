"""Native sidecars, which real servers before 1.29 drop."""

from pathlib import Path

from engine.sandbox import FOREVER, Run, Sandbox
from tests.cluster.client import Api
from tests.e2e.harness import Engine
from tests.e2e.objects import Objects
from tests.e2e_sandbox.conftest import IMAGE, NAMESPACE, engine_on

SERVICE = {"name": "redis", "image": IMAGE, "ports": [6379]}


def test_a_job_with_a_native_sidecar_ends_with_its_main_container(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", script="true", services=[SERVICE])
    run = engine.reconcile()
    assert run.code == 0, run.stderr
    pod = objects.pod("job")
    (sidecar,) = pod["spec"]["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("redis", "Always")
    assert pod["status"]["phase"] == "Succeeded"


def test_where_sidecars_are_unknown_the_service_is_stopped_by_removing_the_pod(
    tmp_path: Path,
) -> None:
    with Sandbox(version="1.26") as sandbox:
        sandbox.namespace(NAMESPACE)
        sandbox.node.will(Run(duration=FOREVER), container="redis")
        engine = engine_on(sandbox, tmp_path)
        engine.spec("job", script="true", services=[SERVICE])
        run = engine.reconcile()
        assert run.code == 0, run.stderr
        assert "no scheduling gates" in run.stderr
        objects = Objects(_api(engine), NAMESPACE)
        objects.api.wait(lambda: objects.pods() == [], "pod gone")
        assert engine.status()["job"]["state"] == "Succeeded"
        again = engine.reconcile()
        assert again.job("job")["changed"] is False


def test_a_sidecars_image_falls_back_like_any_other(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.images.cache("registry.example/redis:7")
    sandbox.images.registry("registry.example", images=["busybox:*"])
    service = {**SERVICE, "image": "registry.example/redis:7"}
    service["pullPolicy"] = ["Always", "IfNotPresent"]
    engine.spec("job", script="true", services=[service], pullPolicy=["Always", "Never"])
    run = engine.reconcile()
    assert run.code == 0, run.stderr
    found = [attempt["pullPolicies"] for attempt in run.job("job")["attempts"]]
    assert found == [
        {"redis": "Always", "main": "Always"},
        {"redis": "IfNotPresent", "main": "Always"},
    ]


def _api(engine: Engine) -> Api:
    return Api.from_kubeconfig(engine.kubeconfig)
