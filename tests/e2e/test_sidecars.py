"""Services are native sidecars: up before the main container, stopped once it has ended."""

from typing import Any

import pytest

from tests.support.api import Object
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = pytest.mark.real

STOPS_WHEN_TOLD = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.2; done"]
HOLDS_OUT = ["sh", "-c", "trap '' TERM; while :; do sleep 0.2; done"]


def service(engine: Engine, name: str, command: list[str]) -> dict[str, Any]:
    return {"name": name, "image": engine.image, "command": command}


def test_services_start_in_order_before_the_main_container_and_stop_after_it(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    services = [service(engine, name, STOPS_WHEN_TOLD) for name in ("first", "second")]
    engine.spec("job", script=target.script("job", lasts=1), services=services)
    run = engine.reconcile(ends=0)
    assert run.job("job")["reason"] == "Succeeded"

    pod = objects.wait_until_over("job")
    assert [(one["name"], one["restartPolicy"]) for one in pod["spec"]["initContainers"]] == [
        ("first", "Always"),
        ("second", "Always"),
    ]
    assert pod["status"]["phase"] == "Succeeded"
    first, second = (ended(one) for one in pod["status"]["initContainerStatuses"])
    main = ended(pod["status"]["containerStatuses"][0])
    assert first["startedAt"] <= second["startedAt"] <= main["startedAt"]
    assert main["finishedAt"] <= second["finishedAt"] <= first["finishedAt"]


def test_a_service_that_will_not_stop_neither_holds_nor_fails_a_job_that_succeeded(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    patch = {"spec": {"terminationGracePeriodSeconds": 2}}
    services = [service(engine, "stubborn", HOLDS_OUT)]
    script = target.script("job", lasts=0.5)
    engine.spec("job", script=script, services=services, podPatch=patch)
    engine.reconcile(ends=0)

    pod = objects.wait_until_over("job")
    assert pod["status"]["phase"] == "Succeeded"
    again = engine.reconcile()
    assert (again.code, again.job("job")["changed"]) == (0, False)


def test_a_job_whose_script_fails_stops_its_service_and_says_the_scripts_exit_code(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    services = [service(engine, "helper", STOPS_WHEN_TOLD)]
    engine.spec("job", script=target.script("job", ends=3), services=services)
    run = engine.reconcile(ends=1)
    assert (run.job("job")["reason"], run.job("job")["exitCode"]) == ("ScriptFailed", 3)

    pod = objects.wait_until_over("job")
    assert pod["status"]["phase"] == "Failed"


def ended(status: Object) -> dict[str, str]:
    found: dict[str, str] = status["state"]["terminated"]
    return found
