"""A node is lost under a job, and comes back: what it does to the run, and to the next one.

The containers of a real node whose kubelet is killed go on, and nobody hears of them. The specs
say how long their pods are tied to an unreachable node: 300 seconds are what they get otherwise.
"""

from typing import Any

import pytest

from tests.support.api import Object
from tests.support.engine import Engine, finish
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects
from tests.support.placement import leaves_lost_nodes
from tests.support.recorder import Event
from tests.support.second_node import SILENCE, SecondNode

pytestmark = pytest.mark.timeout(900)

WITHIN = SILENCE + 120
WORDS = "Taint manager: deleting due to NoExecute taint; its containers may still run on node "
WITHOUT: list[dict[str, Any]] = [{}, {"retry": {"max": 1, "on": ["Evicted"]}}]
RETRIED: dict[str, Any] = {"retry": {"max": 1, "on": ["NodeLost"]}}


def write_spec(engine: Engine, node: SecondNode, **more: Any) -> None:
    owns: dict[str, Any] = {"secrets": {"TOKEN": {"value": "anything"}}}
    engine.spec("job", **owns, **node.spec("job"), **more)


def wait_until_there(objects: Objects, node: SecondNode) -> Object:
    pod = objects.wait_until_running("job")
    assert pod["spec"]["nodeName"] == node.name
    return pod


def uids(objects: Objects) -> list[str]:
    return [pod["metadata"]["uid"] for pod in objects.pods()]


def assert_clean_but_for(objects: Objects, *left: str) -> None:
    objects.api.wait(lambda: uids(objects) == [*left], "end of the other pods", timeout=WITHIN)
    if not left:
        objects.wait_until_clean()


@pytest.mark.parametrize("more", WITHOUT, ids=["no-retry", "retry-if-evicted"])
def test_a_job_on_a_lost_node_was_ended_by_the_system_and_leaves_nothing_once_it_is_back(
    engine: Engine, objects: Objects, other_node: SecondNode, more: dict[str, Any]
) -> None:
    write_spec(engine, other_node, **leaves_lost_nodes(after=1), **more)
    process = engine.start()
    pod = wait_until_there(objects, other_node)
    other_node.lose()
    job = finish(process, WITHIN, ends=7).job("job")
    assert (job["state"], job["reason"]) == ("Failed", "NodeLost")
    assert job["message"] == WORDS + other_node.name
    assert uids(objects) == [pod["metadata"]["uid"]], "nobody can say that it has ended"
    again = engine.reconcile(ends=7).job("job")
    assert (again["reason"], again["changed"]) == ("NodeLost", False)
    other_node.recover()
    assert_clean_but_for(objects)
    assert engine.reconcile(ends=7).job("job") == again
    assert objects.pods() == []


def test_a_job_that_asks_for_it_runs_on_another_node_while_the_first_may_still_run(
    engine: Engine, objects: Objects, other_node: SecondNode
) -> None:
    """That is said. When the node is back, the first is ended, and nothing runs again."""
    write_spec(engine, other_node, **leaves_lost_nodes(after=1), **RETRIED)
    process = engine.start()
    first = wait_until_there(objects, other_node)
    other_node.lose()
    run = finish(process, WITHIN, ends=0)
    job = run.job("job")
    assert [a["outcome"] for a in job["attempts"]] == ["NodeLost", "Succeeded"]
    assert job["attempts"][0]["message"] == WORDS + other_node.name
    assert f"job: Starting: attempt 1 of 2 failed: {WORDS}{other_node.name}; next in" in run.stderr
    last = job["attempts"][1]["uid"]
    nodes = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in objects.pods()}
    assert nodes[first["metadata"]["uid"]] == other_node.name != nodes[last]
    other_node.recover()
    assert_clean_but_for(objects, last)
    assert not engine.reconcile(ends=0).job("job")["changed"]
    assert uids(objects) == [last]


@pytest.mark.real
def test_the_engine_that_stays_tells_a_lost_node_and_runs_nothing_twice_once_it_is_back(
    engine: Engine, objects: Objects, other_node: SecondNode
) -> None:
    write_spec(engine, other_node, **leaves_lost_nodes(after=1), **RETRIED)
    with EngineProcess(engine) as staying:
        wait_until_there(objects, other_node)
        other_node.lose()
        staying.wait_for_line("job: attempt 1 failed: NodeLost: ", within=WITHIN)
        staying.wait_for_line("job: Succeeded", within=WITHIN)
        other_node.recover()
        entry = wait_for_state(engine, "job", "Succeeded")
        assert_clean_but_for(objects, entry["attempts"][-1]["uid"])  # type: ignore[index]
    job = engine.status()["job"]
    assert [a["outcome"] for a in job["attempts"]] == ["NodeLost", "Succeeded"]
    assert job["attempts"] == entry["attempts"]


def test_a_job_outlives_a_node_that_is_back_in_time(
    engine: Engine, objects: Objects, other_node: SecondNode
) -> None:
    """Within what its pod tolerates: it is the same run, and what it does counts."""
    write_spec(engine, other_node, **leaves_lost_nodes(after=600), **RETRIED)
    with EngineProcess(engine) as staying:
        pod = wait_until_there(objects, other_node)
        other_node.lose()
        assert engine.status()["job"]["observed"]["state"] == "Running"
        other_node.recover()
        objects.api.delete("pods", pod["metadata"]["name"], objects.namespace, grace=1)
        staying.wait_for_line("job: Failed PodDeleted", within=WITHIN)
    (attempt,) = engine.status()["job"]["attempts"]
    assert attempt["uid"] == pod["metadata"]["uid"]


@pytest.mark.only("real")
def test_a_node_that_a_taint_empties_ends_a_run_before_the_next_one_begins(
    engine: Engine, objects: Objects, other_node: SecondNode
) -> None:
    """It says the same as a lost one, but is there: two at once would run for the grace period."""
    spec = other_node.spec("job")
    spec["script"] = spec["script"].replace("exit 143", "sleep 8; exit 143")
    spec["podPatch"]["spec"]["terminationGracePeriodSeconds"] = 30
    engine.spec("job", **spec, **RETRIED)
    process = engine.start()
    wait_until_there(objects, other_node)
    with objects.api.watch("pods", objects.namespace) as pods:
        other_node.taint(objects.api)
        run = finish(process, WITHIN, ends=0)
        events = list(pods.events)
    attempts = run.job("job")["attempts"]
    assert [a["outcome"] for a in attempts] == ["NodeLost", "Succeeded"]
    begun = [("ADDED", attempts[1]["pod"]) == (e.type, name_of(e.object)) for e in events]
    of_first = [e for e in events[: begun.index(True)] if name_of(e.object) == attempts[0]["pod"]]
    assert is_over(of_first[-1]), of_first[-1].object["status"]


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def is_over(event: Event) -> bool:
    """Whether nothing of the pod runs any more: it is gone, or its kubelet says so."""
    statuses = event.object["status"].get("containerStatuses", [])
    ended = all("terminated" in status["state"] for status in statuses)
    return event.type == "DELETED" or (bool(statuses) and ended)
