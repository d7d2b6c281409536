"""What a diff announces is what the reconcile after it does, and a diff itself writes nothing."""

import json
from typing import Any

import pytest

from engine.sandbox import Sandbox
from engine.sandbox.request_log import LoggedRequest
from tests.component.dry_run.situations import SITUATIONS, Situation, Stage
from tests.support.engine import CommandResult, Engine

Write = tuple[str, str, str]
PODS = {"create pod ": "create", "delete pod ": "delete", "remove the scheduling": "patch"}
PODS |= {"update pod ": "patch"}
RECORDS = "record "
SILENT = "create what pod "
"""A step that need not write anything."""
AGAIN = "create again what pod "
ORPHANED_SINCE = "jobs.engine/orphaned-since"


def written(sandbox: Sandbox) -> list[Write]:
    """The writes of the engine that were accepted, in their order; Events only tell of them."""
    return [
        (_verb(r), r.resource, r.name)
        for r in sandbox.requests.writes
        if r.user_agent.startswith("engine/") and r.resource != "events" and r.code < 300
    ]


def _verb(request: LoggedRequest) -> str:
    is_record = request.name.endswith(".record") and request.verb != "delete"
    return "write" if is_record else request.verb


def announced(step: str | None, job: str = "job") -> list[Write]:
    """The write that this step is, if any."""
    write = _write(step, job) if step else None
    return [write] if write is not None else []


def _write(step: str, job: str) -> Write | None:
    if step.startswith(RECORDS):
        return ("write", "configmaps", f"{job}.record")
    words = step.replace(":", "").split()
    pod = next((word for word in words if word.startswith(f"{job}-")), "")
    if step.startswith(AGAIN):
        return ("create", "configmaps", pod)
    verb = next((verb for words, verb in PODS.items() if step.startswith(words)), "")
    assert verb or step.startswith(SILENT), step
    return (verb, "pods", pod) if verb else None


def stored(sandbox: Sandbox) -> dict[str, str]:
    """All that only a writer changes: neither what the node says, nor versions."""
    found = {}
    for resource in ("pods", "configmaps", "secrets", "leases"):
        for item in sandbox.objects(resource):
            metadata = {k: v for k, v in item["metadata"].items() if k != "resourceVersion"}
            name = f"{resource}/{metadata['namespace']}/{metadata['name']}"
            found[name] = json.dumps({**item, "metadata": metadata, "status": {}}, sort_keys=True)
    return found


def marks(sandbox: Sandbox) -> set[str]:
    """Names of the records that are marked as orphaned."""
    metadata = [item["metadata"] for item in sandbox.objects("configmaps")]
    return {one["name"] for one in metadata if ORPHANED_SINCE in (one.get("annotations") or {})}


def went(run: CommandResult, action: str) -> set[tuple[str, str]]:
    entries: list[dict[str, Any]] = run.result["pruned"] if run.stdout else []
    return {(e["kind"], e["name"]) for e in entries if e["action"] == action}


def plan(stage: Stage, situation: Situation, mode: str) -> CommandResult:
    folder = str(stage.engine.folder)
    command = ("diff",) if mode == "server" else ("reconcile", "--dry-run", mode)
    return stage.engine.run(*command, folder, "-o", "json", *situation.arguments)


@pytest.fixture
def stage(engine: Engine, sandbox: Sandbox) -> Stage:
    return Stage(engine, sandbox)


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_a_diff_announces_is_what_a_reconcile_does(stage: Stage, name: str) -> None:
    situation, sandbox = SITUATIONS[name], stage.sandbox
    stage.engine.environment["ENGINE_SOURCE"] = "ours"
    situation.make(stage)
    before, marked = stored(sandbox), marks(sandbox)
    sandbox.requests.clear()
    plans = [plan(stage, situation, mode) for mode in situation.modes]
    assert sandbox.requests.writes == []
    assert stored(sandbox) == before
    sandbox.requests.clear()
    done = stage.engine.reconcile(*situation.arguments, *situation.to_finish)
    writes = written(sandbox)
    for mode, said in zip(situation.modes, plans, strict=True):
        found = {job["name"]: job for job in said.result["jobs"]}
        job = found.get("job", {"action": "", "next": None})
        told = announced(job["next"])
        assert job["action"] == situation.action, said
        is_refused = bool(said.result["errors"]) and not writes
        assert is_refused or writes[: len(told)] == told, said
        if mode == "server":
            assert said.code == (situation.code or int(bool(writes))), (said, writes)
        assert went(said, "would-delete") == went(done, "deleted"), said.stdout
        assert said.result["marked"] == len(marks(sandbox) - marked)


def test_a_diff_names_the_quota_that_has_no_room_for_the_record_of_a_job(stage: Stage) -> None:
    situation = SITUATIONS["a quota has no room for its record"]
    situation.make(stage)
    (job,) = plan(stage, situation, "server").result["jobs"]
    assert job["reason"].startswith('queued: configmaps "job.record" is forbidden: exceeded quota')
