"""Situations that a reconcile may come upon: each is made, and nobody has acted on it yet.

Their job is `job`, and has no Secret or ConfigMap of its own but where that is the point: so every
ConfigMap that is written is its record.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from engine.sandbox import FOREVER, Fault, Run, Sandbox
from engine.sandbox.faults import Refuse
from tests.support.api import Api
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine

RECORD = "job.record"
Object = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """Where a situation is made."""

    engine: Engine
    sandbox: Sandbox

    def spec(self, **more: Any) -> None:
        command = {} if "script" in more else {"command": ["true"]}
        self.engine.spec("job", **{**command, **more})

    def remove_spec(self) -> None:
        (self.engine.folder / "job.yaml").unlink()

    def reconcile(self, *arguments: str) -> None:
        self.engine.reconcile(*arguments)
        self.sandbox.clock.settle()

    def run(self, *arguments: str) -> None:
        self.engine.run(*arguments, ends=0)

    def start(self, **more: Any) -> None:
        """A job whose container runs on."""
        self.sandbox.node.will(Run(duration=FOREVER))
        self.spec(**more)
        self.reconcile("--wait", "applied")

    def advance(self, seconds: float) -> None:
        self.sandbox.clock.advance(seconds)
        self.sandbox.clock.settle()

    def defaults(self, **spec: Any) -> None:
        document = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobDefaults", "spec": spec}
        self.engine.write("defaults.yaml", json.dumps(document))

    @property
    def api(self) -> Api:
        return Api.from_kubeconfig(self.engine.kubeconfig)

    def delete(self, resource: str, name: str) -> None:
        self.api.delete(resource, name, NAMESPACE, grace=0)
        self.sandbox.clock.settle()

    def pod(self) -> Object:
        (pod,) = self.sandbox.objects("pods", NAMESPACE)
        return pod

    def change_pod(self, change: Callable[[Object], None]) -> None:
        pod = self.pod()
        change(pod)
        self.sandbox.restore(pod)

    def change_record(self, change: Callable[[Object], None]) -> None:
        record = self.sandbox.get("configmaps", NAMESPACE, RECORD)
        assert record is not None
        data = json.loads(record["data"]["record.json"])
        change(data)
        record["data"]["record.json"] = json.dumps(data)
        self.sandbox.restore(record)


@dataclass(frozen=True)
class Situation:
    """How it is made, and what becomes of `job`."""

    make: Callable[[Stage], None]
    action: str
    """That a plan announces; "" where the job has no spec."""
    arguments: tuple[str, ...] = ()
    """Of both commands."""
    to_finish: tuple[str, ...] = ("--timeout", "20s")
    """Of the reconcile alone."""
    modes: tuple[str, ...] = ("client", "server")
    """Whose plan comes true."""
    code: int = 0
    """Of a diff, where it is neither 0 nor 1."""


def finished(stage: Stage) -> None:
    stage.spec()
    stage.reconcile()


def changed(stage: Stage) -> None:
    finished(stage)
    stage.spec(env={"A": "b"})


def changed_back(stage: Stage) -> None:
    changed(stage)
    stage.reconcile()
    stage.spec()


def rerun_token(stage: Stage) -> None:
    finished(stage)
    stage.spec(rerun="1")


def rerun_asked_for(stage: Stage) -> None:
    finished(stage)
    stage.run("rerun", "job", "-n", NAMESPACE)


def failed(stage: Stage) -> None:
    stage.sandbox.node.will(Run(exit_code=1))
    finished(stage)


def cancelled(stage: Stage) -> None:
    stage.start()
    stage.run("cancel", "job", "-n", NAMESPACE)
    stage.advance(60)


def completed(stage: Stage) -> None:
    stage.spec()
    folder = str(stage.engine.folder)
    stage.run("complete", "job", "-n", NAMESPACE, "-f", folder, "--reason", "it ran elsewhere")


def runs_long(stage: Stage) -> None:
    stage.start()
    stage.advance(30)


def runs_and_is_recorded_so(stage: Stage) -> None:
    runs_long(stage)
    stage.reconcile("--wait", "applied")


def runs_and_changed(stage: Stage) -> None:
    stage.start()
    stage.spec(env={"A": "b"})


def runs_and_is_waited_for(stage: Stage) -> None:
    runs_long(stage)
    stage.spec(env={"A": "b"}, onChange="Wait")


def was_deleted_while_it_ran(stage: Stage) -> None:
    stage.start()
    stage.delete("pods", stage.pod()["metadata"]["name"])


def ended_while_nobody_looked(stage: Stage) -> None:
    stage.sandbox.node.will(Run(duration=5))
    stage.spec()
    stage.reconcile("--wait", "applied")
    stage.advance(60)


def waits_for_its_retry(stage: Stage) -> None:
    stage.start(retry={"max": 1, "on": ["PodDeleted"]})
    stage.delete("pods", stage.pod()["metadata"]["name"])
    stage.reconcile("--timeout", "1s")
    stage.advance(60)


def full(stage: Stage) -> None:
    stage.sandbox.quota(NAMESPACE, pods="0")
    stage.spec()
    stage.reconcile("--timeout", "2s")


def has_no_room_for_its_record(stage: Stage) -> None:
    stage.sandbox.quota(NAMESPACE, configmaps="0")
    stage.spec()


def crashed_and_has_no_room_for_its_record(stage: Stage) -> None:
    crashed_after_the_pod(stage)
    stage.sandbox.quota(NAMESPACE, configmaps="0")


def has_room_again(stage: Stage) -> None:
    full(stage)
    stage.sandbox.quota(NAMESPACE, pods="5")


def is_refused(stage: Stage) -> None:
    words = 'admission webhook "w.example" denied the request: no'
    fault = Fault(Refuse(403, "Forbidden", words), verb="create", resource="pods")
    stage.sandbox.faults.add(fault)
    stage.spec()


def is_anothers(stage: Stage) -> None:
    stage.spec()
    stage.reconcile("--source", "theirs")


def has_a_broken_record(stage: Stage) -> None:
    finished(stage)
    stage.change_record(lambda data: data.update(state="Dancing"))


def is_without_its_record(stage: Stage) -> None:
    finished(stage)
    stage.delete("configmaps", RECORD)


def runs_without_its_record(stage: Stage) -> None:
    stage.start()
    stage.delete("configmaps", RECORD)


def _gate(pod: Object) -> None:
    """As it was before the gate was removed."""
    pod["spec"]["schedulingGates"] = [{"name": "jobs.engine/dependents"}]
    pod["spec"].pop("nodeName", None)
    pod["status"] = {"phase": "Pending"}


def crashed_after_the_pod(stage: Stage) -> None:
    finished(stage)
    stage.change_pod(_gate)
    stage.delete("configmaps", RECORD)
    stage.advance(10)


def crashed_after_the_record(stage: Stage) -> None:
    stage.start()
    stage.change_pod(_gate)


def crashed_before_the_deletion(stage: Stage) -> None:
    stage.start()

    def end(data: Object) -> None:
        ended = {"outcome": "StartTimeout", "finishedAt": "2026-01-01T00:00:00Z"}
        data["attempts"][-1].update(ended)
        data.update(state="Failed", reason="StartTimeout", finishedAt="2026-01-01T00:00:00Z")

    stage.change_record(end)


def has_other_labels(stage: Stage) -> None:
    runs_and_is_recorded_so(stage)
    stage.change_pod(lambda pod: pod["metadata"]["labels"].update({"jobs.engine/attempt": "7"}))


def has_other_labels_and_is_over(stage: Stage) -> None:
    finished(stage)
    stage.change_pod(lambda pod: pod["metadata"]["labels"].pop("jobs.engine/run"))


def needs_its_config_map(stage: Stage) -> None:
    """It was deleted, and nobody has looked since."""
    stage.spec(script="true", podPatch={"spec": {"schedulingGates": [{"name": "a.example/b"}]}})
    stage.reconcile("--wait", "applied")
    name = stage.pod()["metadata"]["name"]
    stage.delete("configmaps", name)
    stage.api.patch("pods", name, {"spec": {"schedulingGates": []}}, NAMESPACE)
    stage.advance(15)


def are_too_many(stage: Stage) -> None:
    config = {"apiVersion": "jobs.engine/v1alpha1", "kind": "EngineConfig"}
    stage.engine.write("../engine.yaml", json.dumps({**config, "limits": {"maxStarts": 0}}))
    stage.engine.environment["ENGINE_CONFIG"] = str(stage.engine.folder.parent / "engine.yaml")
    stage.spec()


def expires(stage: Stage) -> None:
    finished(stage)
    stage.advance(86_400)


def gets_its_expiry(stage: Stage) -> None:
    finished(stage)
    stage.defaults(ttlAfterFinished={"success": "1h"})


def gets_two_expiries(stage: Stage) -> None:
    failed(stage)
    stage.run("rerun", "job", "-n", NAMESPACE)
    stage.reconcile()
    stage.defaults(ttlAfterFinished={"failure": "1h"})


def spec_is_gone(stage: Stage) -> None:
    finished(stage)
    stage.engine.spec("other", command=["true"])
    stage.reconcile()
    stage.remove_spec()


def spec_is_gone_and_its_pod_expired(stage: Stage) -> None:
    spec_is_gone(stage)
    stage.reconcile()
    stage.advance(86_400)


def spec_is_gone_for_long(stage: Stage) -> None:
    spec_is_gone(stage)
    stage.reconcile()
    stage.advance(40 * 86_400)
    stage.reconcile()


def spec_is_back(stage: Stage) -> None:
    spec_is_gone(stage)
    stage.reconcile()
    stage.spec()


def spec_is_gone_of_what_runs(stage: Stage) -> None:
    stage.start()
    stage.engine.spec("other", command=["true"])
    folder = str(stage.engine.folder)
    stage.run("complete", "other", "-n", NAMESPACE, "-f", folder, "--reason", "it ran elsewhere")
    stage.remove_spec()


def cannot_get_its_image(stage: Stage) -> None:
    stage.sandbox.images.down("registry.example")
    stage.spec(pullPolicy=["Always", "IfNotPresent"])
    stage.reconcile("--wait", "applied")
    stage.advance(30)


LATER = ("--wait", "applied", "--timeout", "20s")
BRIEFLY = ("--timeout", "2s")
QUEUED = ("--timeout", "60s", "--queue-timeout", "1s")
PRUNE = ("--prune",)

SITUATIONS = {
    "nothing has run": Situation(Stage.spec, "start"),
    "it is over": Situation(finished, "leave"),
    "its spec has changed": Situation(changed, "start"),
    "its spec has changed back": Situation(changed_back, "start"),
    "its token has changed": Situation(rerun_token, "start"),
    "a rerun was asked for": Situation(rerun_asked_for, "start"),
    "it has failed": Situation(failed, "leave"),
    "it was cancelled": Situation(cancelled, "leave"),
    "it was completed": Situation(completed, "leave"),
    "it runs": Situation(runs_long, "continue", to_finish=LATER),
    "it runs and that is recorded": Situation(runs_and_is_recorded_so, "leave", to_finish=LATER),
    "it runs and has changed": Situation(runs_and_changed, "replace", to_finish=LATER),
    "it runs, has changed and is waited for": Situation(
        runs_and_is_waited_for, "leave", to_finish=BRIEFLY
    ),
    "its pod was deleted": Situation(was_deleted_while_it_ran, "continue"),
    "its pod has ended": Situation(ended_while_nobody_looked, "continue"),
    "its retry is due": Situation(waits_for_its_retry, "start", to_finish=LATER),
    "a quota is full": Situation(full, "leave", to_finish=BRIEFLY, modes=("server",)),
    "a quota has no room for its record": Situation(
        has_no_room_for_its_record, "start", to_finish=QUEUED
    ),
    "an engine died before it was recorded, and a quota has no room for that": Situation(
        crashed_and_has_no_room_for_its_record, "leave", to_finish=QUEUED, modes=("server",)
    ),
    "a quota has room again": Situation(has_room_again, "start"),
    "a webhook refuses its pod": Situation(is_refused, "fail", modes=("server",), code=2),
    "it is another source's": Situation(is_anothers, "fail", code=2),
    "its record can't be read": Situation(has_a_broken_record, "fail", code=2),
    "its record was deleted": Situation(is_without_its_record, "fail", code=2),
    "it runs and its record was deleted": Situation(runs_without_its_record, "fail", code=2),
    "an engine died before it was recorded": Situation(crashed_after_the_pod, "start"),
    "an engine died before the gate was removed": Situation(
        crashed_after_the_record, "continue", to_finish=LATER
    ),
    "an engine died before its pod was deleted": Situation(crashed_before_the_deletion, "continue"),
    "somebody changed its labels": Situation(has_other_labels, "leave", to_finish=LATER),
    "somebody changed the labels of what is over": Situation(has_other_labels_and_is_over, "leave"),
    "its ConfigMap was deleted": Situation(needs_its_config_map, "continue", to_finish=BRIEFLY),
    "too many would start": Situation(are_too_many, "start", code=2),
    "its pod has expired": Situation(expires, "leave"),
    "its pod is to expire": Situation(gets_its_expiry, "continue"),
    "two pods are to expire": Situation(gets_two_expiries, "continue"),
    "its spec is gone": Situation(spec_is_gone, ""),
    "its spec is gone and its pod has expired": Situation(spec_is_gone_and_its_pod_expired, ""),
    "its spec is gone for long": Situation(spec_is_gone_for_long, ""),
    "its spec is back": Situation(spec_is_back, "continue"),
    "its spec is gone while it runs": Situation(spec_is_gone_of_what_runs, "", to_finish=LATER),
    "its image can't be had": Situation(cannot_get_its_image, "continue", to_finish=BRIEFLY),
}
_REMOVED = replace(SITUATIONS["its spec is gone"], arguments=PRUNE)
SITUATIONS["its spec is gone and it is removed"] = _REMOVED
