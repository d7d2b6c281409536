"""Services are native sidecars."""

from engine.sandbox import Sandbox
from tests.e2e.harness import Engine
from tests.e2e.objects import Objects
from tests.e2e_sandbox.conftest import IMAGE

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
