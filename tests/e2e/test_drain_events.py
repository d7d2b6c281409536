"""A drain that waits for a protected job is an Event on its pod, with the time it takes at most."""

import pytest

from engine.sandbox import Run, Sandbox
from engine.sandbox.node.node_object import NODE_NAME
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")


def test_what_a_cordoned_node_waits_for_is_an_event_on_the_protected_pod_alone(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.node.will(Run(duration=600), pod="*")
    engine.spec("kept", script="sleep 600", disruption="protect", timeout="30m")
    engine.spec("free", script="sleep 600")

    def told() -> list[str]:
        events = sandbox.objects("events", engine.namespace)
        return [one["message"] for one in events if one["reason"] == "HoldsDrain"]

    with EngineProcess(engine) as running:
        for job in ("kept", "free"):
            objects.wait_until_running(job)
        objects.api.patch("nodes", NODE_NAME, {"spec": {"unschedulable": True}}, kind="merge")
        line = running.wait_for_line("holds a drain of", within=60)
        objects.api.wait(told, "the Event")
    (message,) = told()
    assert message.startswith(f"holds a drain of {NODE_NAME} until 20")
    assert f"{engine.namespace}/kept" in line
