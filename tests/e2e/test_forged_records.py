"""Records that a stranger wrote: each is its own job's trouble, and leads to no other object."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import NAMESPACE, ClusterUnderTest
from tests.support.engine import CommandResult, Engine
from tests.support.engine_process import EngineProcess, wait_for_state
from tests.support.objects import Objects

pytestmark = pytest.mark.only("sandbox")

OTHER, VICTIM = "other", "victim"
DAY = 86_400
KEY = "record.json"
Data = dict[str, Any]


def to_secret(data: Data, uid: str) -> Data:
    open_attempt = {"number": 1, "pod": f"../../{OTHER}/secrets/{VICTIM}", "uid": uid}
    return {**data, "state": "Running", "reason": "Succeeded", "attempts": [open_attempt]}


def to_every_pod(data: Data, uid: str) -> Data:
    return {**data, "state": "Running", "attempts": [{"number": 1, "pod": "", "uid": uid}]}


def to_another_job(data: Data, uid: str) -> Data:
    name = str(data["attempts"][0]["pod"]).replace("other-job", "good")
    return {**data, "state": "Running", "attempts": [{"number": 1, "pod": name, "uid": uid}]}


def without_attempts(data: Data, _uid: str) -> Data:
    return {key: value for key, value in data.items() if key != "attempts"}


FORGERIES: dict[str, Callable[[Data, str], object]] = {
    "secret": to_secret,
    "every-pod": to_every_pod,
    "other-job": to_another_job,
    "scan": without_attempts,
    "words": lambda data, _: {**data, "message": 5},
    "time": lambda data, _: {**data, "queuedAt": "2020-01-01T00:00:01"},
    "uids": lambda data, _: {**data, "attempts": [{**data["attempts"][0], "uid": ["a"]}]},
    "half": lambda data, _: {**data, "message": "\ud800"},
    "no-object": lambda *_: 5,
}


@pytest.fixture
def victim(objects: Objects, sandbox: Sandbox) -> str:
    """UID of a Secret in another namespace."""
    sandbox.namespace(OTHER)
    body = {"metadata": {"name": VICTIM}, "stringData": {"a": "made up"}}
    return str(objects.api.create("secrets", body, OTHER)["metadata"]["uid"])


@pytest.fixture
def forged(engine: Engine, objects: Objects, sandbox: Sandbox, victim: str) -> tuple[str, ...]:
    """Jobs that are over, whose records somebody wrote anew, beside one that is `good`."""
    for job in (*FORGERIES, "good"):
        engine.spec(job, script="true")
    engine.reconcile(ends=0)
    for job in FORGERIES:
        forge(objects, job, victim)
    sandbox.requests.clear()
    return tuple(FORGERIES)


def forge(objects: Objects, job: str, uid: str) -> None:
    rewrite(objects, job, lambda data: FORGERIES[job](data, uid))


def rewrite(objects: Objects, job: str, change: Callable[[Data], object]) -> str:
    """What the record said before."""
    record = objects.api.get("configmaps", f"{job}.record", NAMESPACE)
    before = str(record["data"][KEY])
    text = json.dumps(change(json.loads(before)))
    objects.api.patch("configmaps", f"{job}.record", {"data": {KEY: text}}, NAMESPACE)
    return before


def assert_nothing_touched(sandbox: Sandbox, objects: Objects, pods: int) -> None:
    """No request of the engine's went elsewhere, and none but the good job's changed anything."""
    asked = [
        entry
        for entry in sandbox.requests
        if entry.user_agent.startswith("engine/") and entry.resource != "leases"
    ]
    assert asked
    places = (
        "/version", "/api/v1/pods", "/api/v1/configmaps", f"/api/v1/namespaces/{NAMESPACE}",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    )  # fmt: skip
    assert [e.path for e in asked if ".." in e.path or not e.path.startswith(places)] == []
    written = [e for e in asked if e.is_write and not e.name.startswith("good")]
    assert [(entry.verb, entry.path) for entry in written] == []
    assert objects.api.get("secrets", VICTIM, OTHER)
    assert len(objects.pods()) == pods


def assert_told(run: CommandResult, code: int, job: str) -> None:
    assert run.code == code, run.stderr
    assert "internal error" not in run.stderr
    assert "Traceback" not in run.stderr
    told = [line for line in run.lines if f"configmap/{NAMESPACE}/{job}.record: " in line]
    assert len(told) == 1, run.stderr
    assert f"kubectl edit -n {NAMESPACE} configmap {job}.record" in told[0]


@pytest.mark.parametrize("command", ["cancel", "rerun"])
def test_cancel_and_rerun_of_a_forged_record_touch_nothing_and_go_on_with_the_next_job(
    command: str, engine: Engine, objects: Objects, sandbox: Sandbox, forged: tuple[str, ...]
) -> None:
    run = engine.run(command, *forged, "good", "-n", NAMESPACE)
    for job in forged:
        assert_told(run, 6, job)
    said = {"cancel": "is already over: Succeeded", "rerun": "will run again"}[command]
    assert f"{NAMESPACE}/good: {said}" in run.stdout
    assert_nothing_touched(sandbox, objects, len(FORGERIES) + 1)


def test_reconcile_fails_the_jobs_of_forged_records_alone_and_runs_none_of_them_again(
    engine: Engine, objects: Objects, sandbox: Sandbox, forged: tuple[str, ...]
) -> None:
    engine.spec("good", script="true # once more")
    for _ in range(2):
        run = engine.reconcile()
        for job in forged:
            assert_told(run, 6, job)
            assert "this run record can't be read" in run.job(job)["error"]
            assert run.job(job)["changed"] is False
        assert run.job("good")["state"] == "Succeeded"
    assert_nothing_touched(sandbox, objects, len(FORGERIES) + 2)


def test_pruning_keeps_what_belongs_to_a_forged_record_and_says_why(
    engine: Engine, objects: Objects, sandbox: Sandbox, forged: tuple[str, ...]
) -> None:
    sandbox.clock.advance(DAY)
    run = engine.run("prune", "-n", NAMESPACE, "-o", "json", ends=0)
    entries = {e["name"]: e for e in run.result["pruned"] if e["kind"] == "Pod"}
    stayed = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in objects.pods()}
    assert {labels["jobs.engine/job"] for labels in stayed.values()} == set(forged)
    for name in stayed:
        assert entries[name]["action"] == "invalid"
        assert "this run record can't be read" in entries[name]["reason"]
    assert_nothing_touched(sandbox, objects, len(FORGERIES))


def test_a_removed_spec_takes_nothing_along_as_long_as_its_record_cant_be_read(
    engine: Engine, objects: Objects, sandbox: Sandbox, forged: tuple[str, ...]
) -> None:
    for job in forged:
        (engine.folder / f"{job}.yaml").unlink()
    run = engine.reconcile("--source", "default", "--prune", ends=0)
    entries = {entry["name"]: entry["action"] for entry in run.result["pruned"]}
    assert entries == {f"{job}.record": "invalid" for job in forged}
    assert_nothing_touched(sandbox, objects, len(FORGERIES) + 1)


@pytest.mark.parametrize("where", [("-n", NAMESPACE), ("-A",)])
def test_status_shows_a_forged_record_with_its_cause_beside_the_others(
    engine: Engine, where: tuple[str, ...], forged: tuple[str, ...]
) -> None:
    run = engine.run("status", *where)
    for job in forged:
        assert_told(run, 0, job)
    rows = {
        row.split()[0].removeprefix(f"{NAMESPACE}/"): row for row in run.stdout.splitlines()[1:]
    }
    assert list(rows) == [*sorted(forged), "good"], "what wants somebody's eye comes first"
    assert "Succeeded" in rows["good"]
    assert "attempts[0].pod can't be '../../othe" in rows["secret"]
    assert "it says Succeeded, and no attempt has ended so" in rows["scan"]
    entries = {
        e["name"]: e for e in engine.run("status", *where, "-o", "json", ends=0).result["jobs"]
    }
    assert {entries[job]["state"] for job in forged} == {"Unknown"}
    assert "message can't be 5" in entries["words"]["error"]
    assert entries["good"]["state"] == "Succeeded"
    named = engine.run("status", *where, "time", ends=0)
    assert [row.split()[0] for row in named.stdout.splitlines()[1:]] == [f"{NAMESPACE}/time"]


def test_an_engine_that_stays_waits_for_a_record_to_be_put_back_and_never_runs_it_twice(
    engine: Engine, objects: Objects, target: ClusterUnderTest
) -> None:
    for job in ("job", "other"):
        engine.spec(job, script=target.script(job))
    with EngineProcess(engine) as staying:
        for job in ("job", "other"):
            wait_for_state(engine, job, "Succeeded")
        before = rewrite(objects, "job", lambda data: {**data, "queuedAt": "2020-01-01T00:00:01"})
        staying.wait_for_line("queuedAt can't be '2020-01-01T00:00:01'")
        engine.spec("other", script="true # changed")
        staying.wait_for_line("/other: Succeeded", times=2)
        rewrite(objects, "job", lambda _: json.loads(before))
        wait_for_state(engine, "job", "Succeeded")
        engine.spec("job", script="true # changed")
        staying.wait_for_line("/job: Succeeded", times=2)
        assert staying.text.count("this run record can't be read") == 1
        assert "internal error" not in staying.text
    assert len(objects.pods()) == 4


def test_an_engine_that_stays_removes_no_job_whose_record_cant_be_read(
    engine: Engine, objects: Objects, sandbox: Sandbox, forged: tuple[str, ...]
) -> None:
    with EngineProcess(engine, "--source", "default", "--prune", "--allow-empty") as staying:
        for job in (*forged, "good"):
            (engine.folder / f"{job}.yaml").unlink()
        staying.wait_for_line("good.record deleted")
        assert "internal error" not in staying.text
    assert_nothing_touched(sandbox, objects, len(FORGERIES))


def test_a_forged_time_in_a_queue_stops_nobody_else(
    engine: Engine, objects: Objects, sandbox: Sandbox
) -> None:
    sandbox.quota(NAMESPACE, pods="0")
    jobs = [f"job-{number}" for number in range(4)]
    for job in jobs:
        engine.spec(job, script="true")
    with EngineProcess(engine, "--concurrency", "2") as staying:
        for job in jobs:
            wait_for_state(engine, job, "Queued")
        for job in jobs[:2]:
            rewrite(objects, job, lambda data: {**data, "queuedAt": "2020-01-01T00:00:01"})
        sandbox.quota(NAMESPACE, pods="10")
        for job in jobs[2:]:
            staying.wait_for_line(f"/{job}: Succeeded")
        assert "internal error" not in staying.text
