"""Specs that went while no engine ran: the next one removes their jobs, with a Role alone, too."""

import pytest

from engine.sandbox import Sandbox
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")


def test_the_last_spec_that_went_while_no_engine_ran_is_removed_without_a_right_to_all_namespaces(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    for resource in ("pods", "configmaps"):
        sandbox.deny("list", resource, namespace="")
    engine.spec("goes", script="true")
    engine.reconcile("--source", objects.namespace, ends=0)
    (engine.folder / "goes.yaml").unlink()
    with EngineProcess(engine, "--prune", "--allow-empty", ready=False):
        objects.api.wait(
            lambda: not sandbox.objects("pods", objects.namespace), "end of the pod", 120
        )
        objects.api.wait(
            lambda: objects.api.find("configmaps", "goes.record", objects.namespace) is None,
            "end of the record",
        )
