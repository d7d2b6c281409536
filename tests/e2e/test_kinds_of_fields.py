"""Every field of the schema, changed by itself while a job is queued, runs, succeeded or failed.

What happened is read from the API server's own log. A change of what runs starts one run; of how it
is tried, none but of a job that failed; of how it is kept, none at all.
"""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.api.field_kinds import FieldKind, field_kind
from engine.api.model import RETRIED
from engine.api.schema_docs import explain_field
from engine.cluster.records import KEY
from engine.files import resource_dir
from engine.refs import parse_pod_name
from tests.e2e.conftest import Quota
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = [pytest.mark.real, pytest.mark.timeout(500)]

IDENTITY = {"metadata.name", "metadata.namespace", "spec.matrix"}
"""A change of these makes another job."""
RETRIED_AFTER = sorted(RETRIED)
RUNTIME_DEFAULT = {"seccompProfile": {"type": "RuntimeDefault"}}
SAME: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "timeout": ({}, {"timeout": "1h"}),
    "starttimeout": ({}, {"startTimeout": 600}),
    "onchange": ({}, {"onChange": "Replace"}),
    "template": ({}, {"template": "job"}),
    "rerun": ({}, {"rerun": ""}),
    "retry": ({}, {"retry": {"max": 0}}),
    "retry-on": ({"retry": {"max": 1}}, {"retry": {"max": 1, "on": RETRIED_AFTER}}),
    "disruption": ({}, {"disruption": "allow"}),
    "ttl": ({"ttl": None}, {"ttl": "1h15m"}),
    "hold": ({}, {"hold": False}),
    "suspend": ({}, {"suspend": False}),
    "env": ({}, {"env": {}}),
    "podpatch": ({}, {"podPatch": {}}),
    "token": ({}, {"automountServiceAccountToken": False}),
    "context": ({}, {"securityContext": {"allowPrivilegeEscalation": False}}),
    "podcontext": ({}, {"podSecurityContext": RUNTIME_DEFAULT}),
}
"""What a spec has before, and beside it a default that is written out."""
STATES = ("queued", "running", "succeeded", "failed")
EXPECTED = {
    (FieldKind.RUNS, "queued"): "runs once",
    (FieldKind.RUNS, "running"): "replaced",
    (FieldKind.RUNS, "succeeded"): "runs again",
    (FieldKind.RUNS, "failed"): "runs again",
    (FieldKind.TRIED, "queued"): "runs once",
    (FieldKind.TRIED, "running"): "nothing",
    (FieldKind.TRIED, "succeeded"): "nothing",
    (FieldKind.TRIED, "failed"): "runs again",
    (FieldKind.KEPT, "queued"): "runs once",
    (FieldKind.KEPT, "running"): "updated in place",
    (FieldKind.KEPT, "succeeded"): "updated in place",
    (FieldKind.KEPT, "failed"): "updated in place",
    (None, "queued"): "runs once",
    (None, "running"): "nothing",
    (None, "succeeded"): "nothing",
    (None, "failed"): "nothing",
}
BUT = {
    ("timeout", "running"): "updated in place",  # it is shorter
    ("disruption", "running"): "updated in place",
    ("ttlafterfinished", "running"): "nothing",  # it is written at the end
    ("suspend", "queued"): "waits",  # as its record says, also when there is room
    **{(name, state): "nothing" for name in ("suspend", "managedby") for state in STATES[1:]},
}


class Jobs:
    """One job for each field, and one for each default: their specs before and after a change."""

    def __init__(self, engine: Engine, target: ClusterUnderTest, state: str) -> None:
        self.engine, self.target = engine, target
        self.lasts, self.ends = (600 if state == "running" else 0), (3 if state == "failed" else 0)
        self.kinds: dict[str, FieldKind | None] = {}
        self.after: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    def write(self) -> None:
        for path in sorted(every_field() - IDENTITY):
            top, name = path.split(".", 1)
            job = name.lower().replace(".", "-")
            self.kinds[job] = field_kind(path.split("."))
            if top == "metadata":
                self._add(job, {}, {}, {name: {"example.com/team": "web"}})
            else:
                before, after = self._change(job, name)
                self._add(job, before, after, {})
        for name, (before, after) in SAME.items():
            self.kinds[f"same-{name}"] = None
            self._add(f"same-{name}", before, after, {})

    def edit(self) -> None:
        for job, (spec, metadata) in self.after.items():
            self._write(job, spec, metadata)

    def _add(
        self, job: str, before: dict[str, Any], after: dict[str, Any], metadata: dict[str, Any]
    ) -> None:
        script = self.target.script(job, lasts=self.lasts, ends=self.ends)
        spec = {"image": self.target.image, "ttl": "1d", "script": script, **before}
        self._write(job, spec, {})
        self.after[job] = {**spec, **after}, metadata

    def _write(self, job: str, spec: dict[str, Any], metadata: dict[str, Any]) -> None:
        document = {
            "apiVersion": "jobs.engine/v1alpha1",
            "kind": "JobSpec",
            "metadata": {"name": job, "namespace": self.engine.namespace, **metadata},
            "spec": {name: value for name, value in spec.items() if value is not None},
        }
        self.engine.write(f"{job}.yaml", json.dumps(document))

    def _change(self, job: str, field: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the spec has of this field before, and what it has afterwards."""
        script = self.target.script(job, lasts=self.lasts, ends=self.ends)
        image, shell = self.target.image, ["sh", "-c", script]
        helper = self.target.script(job, lasts=600, container="helper")
        service = {"name": "helper", "image": image, "command": ["sh", "-c", helper]}
        first = {"name": "fetch", "image": image, "command": ["true"]}
        login = {"registry": "r.example", "username": "u", "password": {"value": "some-password"}}
        changes: dict[str, tuple[Any, Any]] = {
            "image": (image, self.target.other_image if field == "image" else ""),
            "script": (script, f"{script}\n"),
            "args": (None, [f"{script}\n"]),
            "env": (None, {"LEVEL": "debug"}),
            "resources": (None, {"requests": {"cpu": "1m"}}),
            "securityContext": (None, {"runAsUser": 1000}),
            "podSecurityContext": (None, {"fsGroup": 1000}),
            "workingDir": (None, "/tmp"),
            "files": (None, {"a.txt": "some text"}),
            "secrets": (None, {"TOKEN": {"value": "some-value"}}),
            "registryCredentials": (None, [login]),
            "services": (None, [service]),
            "initContainers": (None, [first]),
            "serviceAccountName": (None, "default"),
            "automountServiceAccountToken": (None, True),
            "nodeSelector": (None, {"kubernetes.io/os": "linux"}),
            "tolerations": (None, [{"key": "ci", "operator": "Exists"}]),
            "pullPolicy": (None, "IfNotPresent"),
            "timeout": (None, "30m"),
            "startTimeout": (None, "9m"),
            "ttl": ("1d", "2d"),
            "ttlAfterFinished": (None, {"success": "3h", "failure": "3h"}),
            "hold": (None, True),
            "retry": (None, {"max": 1, "on": ["Evicted"]}),
            "onChange": (None, "Wait"),
            "dependsOn": (None, [{"name": "image", "on": "finished"}]),
            "rerun": (None, "once-more"),
            "disruption": (None, "protect"),
            "volumes": (None, [{"name": "v", "emptyDir": {}, "mountPath": "/v"}]),
            "suspend": (None, True),
            "managedBy": (None, "jobs.engine/engine"),
            "template": (None, "other"),
            "podPatch": (None, {"metadata": {"labels": {"patched": "yes"}}}),
        }
        if field == "command":
            return {}, {"script": None, "command": shell}
        if field == "args":
            whole = {"script": None, "command": shell[:2], "args": shell[2:]}
            return whole, {"args": changes["args"][1]}
        if field.endswith(".pullPolicy"):
            name = field.split(".", maxsplit=1)[0]
            one = {"services": service, "initContainers": first}[name]
            return {name: [one]}, {name: [{**one, "pullPolicy": "IfNotPresent"}]}
        assert field in changes, f"say here how spec.{field} can be changed"
        before, after = changes[field]
        return ({} if before is None else {field: before}), {field: after}


def every_field() -> set[str]:
    """Of the schema: of `metadata`, of `spec`, and those that have a kind of their own."""
    found = {
        f"{top}.{field.name}"
        for top in ("metadata", "spec")
        for field in explain_field("JobSpec", [top]).fields
    }
    return found | {"spec.services.pullPolicy", "spec.initContainers.pullPolicy"}


def test_every_default_of_the_schema_is_among_those_that_are_written_out() -> None:
    fields = explain_field("JobSpec", ["spec"]).fields
    written = {name for _, after in SAME.values() for name in after}
    assert {field.name for field in fields if field.default} <= written


@pytest.mark.real("running")
@pytest.mark.parametrize("state", STATES)
def test_a_change_of_each_field_does_what_its_kind_says_and_nothing_runs_twice(
    engine: Engine,
    target: ClusterUnderTest,
    objects: Objects,
    limit: Quota,
    tmp_path: Path,
    state: str,
) -> None:
    shutil.copytree(resource_dir("templates") / "job", tmp_path / "sets" / "other")
    jobs = Jobs(engine, target, state)
    jobs.write()
    flags = ["--templates", str(tmp_path / "sets"), "--queue-timeout", "1s"]
    flags += ["--wait", "applied"] if state == "running" else []
    ends = {"queued": 5, "failed": 1}.get(state, 0)
    if state == "queued":
        limit({"pods": "0"}, name="none")
    engine.reconcile(*flags, timeout=500, ends=ends)
    if state == "running":
        wait_until_recorded(engine, objects, flags)
    target.forget_requests()
    jobs.edit()
    engine.reconcile(*flags, timeout=500, ends=ends)
    writes = target.writes()
    if state == "queued":
        assert ("create", "pods") not in {one[:2] for one in writes}
        objects.api.delete("resourcequotas", "none", objects.namespace)
        engine.reconcile(*flags, timeout=500, ends=0)
        writes = target.writes()
    happened = {job: what_happened(job, writes, state) for job in jobs.kinds}
    for job, what in happened.items():
        print(f"{job:28} {state:10} {what}")  # noqa: T201 - the table, with pytest -rP
    assert happened == {
        job: BUT.get((job, state), EXPECTED[kind, state]) for job, kind in jobs.kinds.items()
    }
    if state == "running":
        wait_until_recorded(engine, objects, flags)
    target.forget_requests()
    engine.reconcile(*flags, timeout=500, ends=1 if state == "failed" else 0)
    assert target.writes() == [], "a write although nothing changed"


def wait_until_recorded(engine: Engine, objects: Objects, flags: list[str]) -> None:
    """Until every record says that its job runs, which an engine writes a moment later."""

    def recorded() -> bool:
        engine.reconcile(*flags, timeout=500, ends=0)
        label = "jobs.engine/component=record"
        records = objects.api.list("configmaps", objects.namespace, labels=label)
        return {json.loads(record["data"][KEY])["state"] for record in records} == {"Running"}

    objects.api.wait(recorded, "records that say Running", timeout=300)


def what_happened(job: str, writes: list[tuple[str, str, str]], state: str) -> str:
    """By the writes of this job: of its pods, of what they own, and of its record."""
    done = Counter(
        (verb, resource)
        for verb, resource, name in writes
        if ((parsed := parse_pod_name(name)) and parsed[0] == job) or name == f"{job}.record"
    )
    created, deleted = done["create", "pods"], done["delete", "pods"]
    if not done:
        return "nothing"
    if done == {("update", "configmaps"): 1}:
        return "waits"
    if (created, deleted) == (0, 0):
        return "updated in place" if done["patch", "pods"] == 1 else f"{done}"
    if (created, deleted) == (1, 0) and state != "running":
        return "runs once" if state == "queued" else "runs again"
    return "replaced" if (created, deleted, state) == (1, 1, "running") else f"{done}"
