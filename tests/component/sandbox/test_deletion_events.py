"""What a watch sees of a Pod's end and of its deletion: the order of a kubelet of 1.36."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from engine.sandbox import FOREVER, Run, Sandbox
from tests.support.client import JSON_PATCH, MERGE, Obj
from tests.support.sandbox_namespace import GATE, Namespace, container

SIDECARS = [container(name, restartPolicy="Always") for name in ("db", "proxy")]


@dataclass(frozen=True)
class Seen:
    """One event of the Pod, as far as its end is concerned."""

    type: str
    phase: str
    grace: int | None
    code: int | None
    generation: int
    observed: int | None


def seen(event: Obj) -> Seen:
    meta, status = event["object"]["metadata"], event["object"]["status"]
    statuses = status.get("containerStatuses") or [{"state": {}}]
    return Seen(
        event["type"],
        status["phase"],
        meta.get("deletionGracePeriodSeconds"),
        statuses[0]["state"].get("terminated", {}).get("exitCode"),
        meta["generation"],
        status.get("observedGeneration"),
    )


def events(ci: Namespace, since: str, *, until: str = "DELETED") -> list[Obj]:
    out = []
    with ci.client.watch(ci.path("pods"), resourceVersion=since) as watch:
        for event in watch:
            out.append(event)
            if event["type"] == until:
                break
    return out


def version(ci: Namespace) -> str:
    return str(ci.pod()["metadata"]["resourceVersion"])


def asked_at(event: Obj) -> float:
    meta = event["object"]["metadata"]
    end = datetime.fromisoformat(meta["deletionTimestamp"]).timestamp()
    return end - float(meta["deletionGracePeriodSeconds"])


@pytest.mark.parametrize(
    ("grace", "run", "code", "after"),
    [
        (1, Run(duration=FOREVER), 143, 0),
        (5, Run(duration=FOREVER, stop=3), 143, 3),
        (30, Run(duration=FOREVER, stop=3, stop_exit_code=0), 0, 3),
        (30, Run(duration=FOREVER, stop=3, stop_exit_code=7), 7, 3),
        (1, Run(duration=FOREVER, stop=FOREVER), 137, 2),
        (5, Run(duration=FOREVER, stop=FOREVER), 137, 5),
        (None, Run(duration=FOREVER, stop=FOREVER), 137, 30),
    ],
)
def test_a_running_pod_is_marked_stopped_and_deleted_by_the_kubelet(
    ci: Namespace, sandbox: Sandbox, grace: int | None, run: Run, code: int, after: int
) -> None:
    sandbox.node.will(run)
    ci.start()
    ci.advance(1)
    since = version(ci)
    ci.client.delete(ci.path("pods", "job"), {"gracePeriodSeconds": grace} if grace else None)
    ci.advance(60)
    found = events(ci, since)
    given = grace or 30
    phase = "Failed" if code else "Succeeded"
    assert [seen(event) for event in found] == [
        Seen("MODIFIED", "Running", given, None, 2, 1),
        Seen("MODIFIED", "Running", given, None, 2, 2),
        Seen("MODIFIED", phase, given, code, 2, 2),
        Seen("MODIFIED", phase, 0, code, 2, 2),
        Seen("DELETED", phase, 0, code, 2, 2),
    ]
    assert asked_at(found[-1]) >= asked_at(found[0]) + after
    end = found[2]["object"]["status"]["containerStatuses"][0]["state"]["terminated"]
    took = datetime.fromisoformat(end["finishedAt"]).timestamp() - asked_at(found[0])
    assert after <= took <= after + 1


def test_a_forced_deletion_takes_the_object_at_once(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=FOREVER))
    ci.start()
    ci.advance(1)
    since = version(ci)
    ci.client.delete(ci.path("pods", "job"), {"gracePeriodSeconds": 0})
    assert [seen(event) for event in events(ci, since)] == [
        Seen("MODIFIED", "Running", 0, None, 2, 1),
        Seen("DELETED", "Running", 0, None, 2, 1),
    ]


def test_a_finished_pod_goes_at_once_whatever_grace_is_asked_for(ci: Namespace) -> None:
    ci.start()
    ci.advance(1)
    since = version(ci)
    ci.client.delete(ci.path("pods", "job"), {"gracePeriodSeconds": 30})
    assert [seen(event) for event in events(ci, since)] == [
        Seen("MODIFIED", "Succeeded", 0, 0, 2, 1),
        Seen("DELETED", "Succeeded", 0, 0, 2, 1),
    ]


def test_a_grace_can_only_be_shortened(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=FOREVER, stop=FOREVER))
    ci.start()
    ci.advance(1)

    def delete(grace: int) -> dict[str, Any]:
        body = {"gracePeriodSeconds": grace}
        meta: dict[str, Any] = ci.client.delete(ci.path("pods", "job"), body).body["metadata"]
        return meta

    first = delete(30)
    ci.advance(2)
    assert delete(40)["deletionTimestamp"] == first["deletionTimestamp"]
    shorter = delete(10)
    assert (shorter["deletionGracePeriodSeconds"], shorter["generation"]) == (10, 2)
    moved = asked_at({"object": {"metadata": shorter}}) - asked_at({"object": {"metadata": first}})
    assert moved == 0
    ci.advance(5)
    assert delete(3)["deletionGracePeriodSeconds"] == 1
    ci.advance(3)
    assert ci.client.get(ci.path("pods", "job")).code == 404


def test_a_container_that_ends_by_itself_in_its_grace_keeps_its_exit_code(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=5, exit_code=4, stop=FOREVER))
    ci.start()
    ci.advance(1)
    since = version(ci)
    ci.client.delete(ci.path("pods", "job"))
    ci.advance(10)
    assert seen(events(ci, since)[-1]).code == 4


def test_a_pod_that_never_ran_is_deleted_with_a_made_up_status(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.images.down("registry.example")
    ci.start()
    ci.advance(5)
    since = version(ci)
    ci.client.delete(ci.path("pods", "job"))
    ci.advance(5)
    last = events(ci, since)[-1]
    ended = last["object"]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("ContainerStatusUnknown", 137)
    assert ended["finishedAt"] is None
    assert last["object"]["status"]["phase"] == "Failed"


def test_three_status_writes_follow_the_end_of_a_container(ci: Namespace) -> None:
    ci.start()
    ci.advance(0.06)
    since = version(ci)
    ci.advance(2)
    with ci.client.watch(ci.path("pods"), resourceVersion=since) as watch:
        found = watch.take(3)
    told = []
    for event in found:
        conditions = {c["type"]: c for c in event["object"]["status"]["conditions"]}
        ready, up = conditions["Ready"], conditions["PodReadyToStartContainers"]
        told.append((seen(event).phase, seen(event).code, ready["reason"], up["status"]))
    assert told == [
        ("Running", 0, "PodCompleted", "True"),
        ("Succeeded", 0, "PodCompleted", "True"),
        ("Succeeded", 0, "PodCompleted", "False"),
    ]


def test_a_generation_counts_the_changes_of_the_spec_and_the_deletion(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=FOREVER))
    made = ci.start(schedulingGates=[{"name": GATE}], activeDeadlineSeconds=600)
    assert made.body["metadata"]["generation"] == 1
    assert "observedGeneration" not in made.body["status"]
    ci.client.patch(ci.path("pods", "job"), {"metadata": {"labels": {"a": "b"}}}, MERGE)
    ci.open_gate()
    ci.advance(1)
    pod = ci.pod()
    assert (pod["metadata"]["generation"], pod["status"]["observedGeneration"]) == (2, 2)
    assert {c["observedGeneration"] for c in pod["status"]["conditions"]} == {2}
    steps = [{"op": "replace", "path": "/spec/activeDeadlineSeconds", "value": 500}]
    ci.client.patch(ci.path("pods", "job"), steps, JSON_PATCH)
    ci.advance(1)
    assert ci.pod()["status"]["observedGeneration"] == 3
    assert ci.client.delete(ci.path("pods", "job")).body["metadata"]["generation"] == 4


def test_sidecars_are_stopped_after_main_the_last_one_first(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=FOREVER, stop=2), container="main")
    sandbox.node.will(Run(duration=FOREVER, stop=3, stop_exit_code=0), container="proxy")
    sandbox.node.will(Run(duration=FOREVER, stop=4), container="db")
    ci.start(initContainers=SIDECARS)
    ci.advance(1)
    assert ci.phase() == "Running"
    since = version(ci)
    ci.client.delete(ci.path("pods", "job"))
    ci.advance(20)
    status = events(ci, since)[-1]["object"]["status"]
    entries = [*status["containerStatuses"], *status["initContainerStatuses"]]
    ends = {entry["name"]: entry["state"]["terminated"] for entry in entries}
    assert {name: end["exitCode"] for name, end in ends.items()} == {
        "main": 143, "proxy": 0, "db": 143,
    }  # fmt: skip
    order = sorted(ends, key=lambda name: str(ends[name]["finishedAt"]))
    assert order == ["main", "proxy", "db"]


def test_a_sidecar_that_does_not_stop_is_killed_and_the_job_has_succeeded(
    ci: Namespace, sandbox: Sandbox
) -> None:
    sandbox.node.will(Run(duration=FOREVER, stop=FOREVER), container="db")
    ci.start(initContainers=SIDECARS, terminationGracePeriodSeconds=5)
    ci.advance(4)
    assert ci.phase() == "Running"
    ci.advance(3)
    assert ci.phase() == "Succeeded"
    assert ci.state("db")["terminated"]["exitCode"] == 137


def test_an_eviction_is_announced_before_the_deletion(ci: Namespace, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=FOREVER))
    ci.start()
    ci.advance(1)
    since = version(ci)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "job"}}
    assert ci.client.post(ci.path("pods", "job", "eviction"), body).code == 201
    ci.advance(5)
    found = events(ci, since)
    assert [seen(event).grace for event in found] == [None, 30, 30, 30, 0, 0]
    for event in found:
        conditions = {c["type"]: c for c in event["object"]["status"]["conditions"]}
        told = conditions["DisruptionTarget"]
        assert (told["reason"], told["message"]) == (
            "EvictionByEvictionAPI",
            "Eviction API: evicting",
        )


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"metadata": {"name": "other"}}, 400),
        ({"deleteOptions": {"preconditions": {"uid": "other"}}}, 409),
        ({"deleteOptions": {"dryRun": ["All"]}}, 201),
    ],
)
def test_an_eviction_that_is_not_meant_for_this_pod_leaves_it_alone(
    ci: Namespace, sandbox: Sandbox, more: Obj, code: int
) -> None:
    sandbox.node.will(Run(duration=FOREVER))
    ci.start()
    ci.advance(1)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "job"}, **more}
    before = ci.pod()
    assert ci.client.post(ci.path("pods", "job", "eviction"), body).code == code
    ci.advance(5)
    assert ci.pod() == before
