"""What proves that the engine may delete an object, and that nothing is deleted without a proof."""

import ast
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import engine
from engine.lifecycle.ownership import LeftBehind, Marked, NeverRan, OwnRecord, Recorded
from engine.lifecycle.record import Record, RunHistoryEntry
from engine.status.outcome import Reason, State
from tests.unit.lifecycle.states import JOB, attempt, finished, record
from tests.unit.pods import UID, job_pod

POD = f"build-{JOB.run}-1"
RECORD = record(attempt())
ENGINE = Path(engine.__file__).parent
SENDER = "cluster/api.py"


def metadata(name: str = POD, uid: str = UID, **more: Any) -> dict[str, Any]:
    return {"namespace": JOB.key.namespace, "name": name, "uid": uid, **more}


def owner(name: str = POD, uid: str = UID, kind: str = "Pod") -> dict[str, str]:
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}


def test_a_pod_is_the_engines_by_its_uid_and_name_in_a_record() -> None:
    proof = Recorded(RECORD)
    assert proof.covers("Pod", metadata())
    assert not proof.covers("Pod", metadata("database-0"))
    assert not proof.covers("Pod", metadata(uid="another"))
    assert not proof.covers("Pod", {**metadata(), "namespace": "elsewhere"})
    assert not proof.covers("Pod", metadata(uid=""))


def test_the_pods_of_the_runs_before_are_the_engines_too() -> None:
    past = RunHistoryEntry("f" * 8, 3, "uid-9", state=State.FAILED, reason=Reason.EVICTED)
    proof = Recorded(replace(RECORD, history=(past,)))
    assert proof.covers("Pod", metadata(f"build-{'f' * 8}-3", "uid-9"))
    assert not proof.covers("Pod", metadata(f"build-{'f' * 8}-2", "uid-9"))


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_an_object_is_the_engines_by_an_owner_reference_to_a_pod_in_a_record(kind: str) -> None:
    proof = Recorded(RECORD)
    assert proof.covers(kind, metadata(uid="its-own", ownerReferences=[owner()]))
    assert not proof.covers(kind, metadata())
    for wrong in (owner(uid="another"), owner("database-0"), owner(kind="ReplicaSet")):
        assert not proof.covers(kind, metadata(uid="its-own", ownerReferences=[wrong]))
    assert not proof.covers(kind, metadata("app-config", "its-own", ownerReferences=[owner()]))


def test_labels_prove_nothing() -> None:
    labelled = metadata("database-0", "uid-db", resourceVersion="7")
    labelled["labels"] = job_pod(JOB)["metadata"]["labels"]
    proofs = (Recorded(RECORD), LeftBehind("database-0"), Marked(("jobs.engine/ttl",)))
    never_ran = NeverRan({"metadata": labelled, "spec": {}})
    for proof in (*proofs, never_ran, OwnRecord(JOB.key)):
        assert not any(proof.covers(kind, labelled) for kind in ("Pod", "Secret", "ConfigMap"))


def test_a_pod_never_ran_while_the_engines_gate_is_on_that_very_version() -> None:
    gated = job_pod(JOB, gated=True)
    gated["metadata"]["resourceVersion"] = "7"
    assert NeverRan(gated).covers("Pod", gated["metadata"])
    assert not NeverRan(gated).covers("Pod", {**gated["metadata"], "resourceVersion": "8"})
    running = {**gated, "spec": {}}
    assert not NeverRan(running).covers("Pod", gated["metadata"])


def test_what_only_pods_of_its_own_name_own_was_left_behind() -> None:
    proof = LeftBehind(POD)
    assert proof.covers("Secret", metadata(ownerReferences=[owner(uid="of-a-pod-before")]))
    assert not proof.covers("Secret", metadata(ownerReferences=[owner(), owner("other")]))
    assert not proof.covers("Secret", metadata())


def test_what_a_pod_left_behind_is_no_pod_and_has_its_name() -> None:
    proof = LeftBehind(POD)
    assert proof.covers("Secret", metadata(uid="its-own", ownerReferences=[owner()]))
    assert not proof.covers("Pod", metadata(uid="its-own", ownerReferences=[owner()]))
    other = f"build-{JOB.run}-2"
    assert not proof.covers("Secret", metadata(other, "a", ownerReferences=[owner(other)]))
    assert not proof.covers("Secret", metadata(uid="its-own"))


def test_a_gate_on_what_is_not_named_as_a_jobs_pod_or_is_no_pod_proves_nothing() -> None:
    gated = job_pod(JOB, gated=True)
    own = {**gated["metadata"], "resourceVersion": "7"}
    proof = NeverRan({**gated, "metadata": own})
    assert proof.covers("Pod", own)
    assert not proof.covers("Secret", own)
    database = {**own, "name": "database-0"}
    assert not NeverRan({**gated, "metadata": database}).covers("Pod", database)
    assert not NeverRan({"metadata": own}).covers("Pod", own)


def test_only_an_annotation_that_the_operator_asked_for_is_a_mark() -> None:
    proof = Marked(("jobs.engine/ttl", "janitor/ttl"))
    assert proof.covers("Secret", metadata(annotations={"janitor/ttl": "1", "a": "b"}))
    assert not proof.covers("Secret", metadata(annotations={"a": "b"}))
    assert not proof.covers("Secret", metadata())


def test_a_record_goes_only_in_a_version() -> None:
    proof = OwnRecord(JOB.key)
    assert proof.covers("ConfigMap", metadata("build.record", resourceVersion="7"))
    assert not proof.covers("ConfigMap", metadata("build.record"))
    assert not proof.covers("ConfigMap", metadata("other.record", resourceVersion="7"))


@pytest.mark.parametrize(
    ("after", "begun"),
    [
        (RECORD, False),
        (finished(), False),
        (replace(RECORD, message="told"), False),
        (record(attempt(uid="uid-2")), True),
        (replace(RECORD, spec_hash="f" * 64), True),
    ],
)
def test_a_record_tells_whether_another_run_has_begun(after: Record, begun: bool) -> None:
    assert after.has_begun_since(RECORD) is begun
    assert finished().again().has_begun_since(finished())


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) == name
    ]


def test_a_delete_is_sent_from_one_place_and_never_without_a_proof() -> None:
    """The verb is in one function, and each of its callers gives a proof by position."""
    places, calls = set(), 0
    for path in sorted(ENGINE.rglob("*.py")):
        where = path.relative_to(ENGINE).as_posix()
        if where.startswith("sandbox/"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value == "DELETE":
                places.add(where)
        for call in _calls(tree, "delete"):
            if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "api":
                calls += 1
                assert len(call.args) == 4, f"{where}:{call.lineno}: no proof"
        assert not _calls(tree, "delete_collection"), where
    assert calls
    assert places == {SENDER}
    sender = ast.parse((ENGINE / SENDER).read_text(encoding="utf-8"))
    senders = [
        function.name
        for function in ast.walk(sender)
        if isinstance(function, ast.FunctionDef) and "'DELETE'" in ast.unparse(function)
    ]
    assert senders == ["delete"]
