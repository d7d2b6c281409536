"""A small cluster in memory: what an API server, a kubelet and a garbage collector do to one job.

Every write of an engine arrives here, and here the promises are judged: at the moment a container
starts, a dependent is created, a record is written. `blame` explains each way a run may fail, so
that an end which nobody caused is found.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.api.model import Job
from engine.decide.actions import DeletePod, StampExpiry
from engine.decide.record import Attempt, Record, record_from_data, record_to_data
from engine.decide.transitions import cancelled, rerun
from engine.refs import GATE, pod_name
from engine.status.outcome import Reason
from engine.times import format_time
from engine.wellknown import ATTEMPT, EXPIRES_AT, JOB, MANAGED_BY, MANAGER, RUN, SOURCE

SOURCE_NAME = "default"
IMAGE = "registry.example/alpine:3.20"
SETUP_IMAGE = "registry.example/setup:1"
GRACE = 30
DEPENDENTS = ("Secret", "ConfigMap")
QUOTA_WORDS = 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1'
ADMISSION_WORDS = 'admission webhook "policy" denied the request'

Pod = dict[str, Any]


class RefusedError(Exception):
    """The server refuses a create: "quota" or "admission"."""


class ExistsError(Exception):
    """409 on a create."""


class ConflictError(Exception):
    """409 on a write or a delete with a precondition, or 422 on a patch that tests."""


class GoneError(Exception):
    """404."""


@dataclass
class Cluster:
    """State of the server and its node; `log` is what a watch delivers."""

    retried: frozenset[str] = frozenset()
    start_timeout: float = 600.0
    containers: tuple[str, ...] = ("main",)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    pods: dict[str, Pod] = field(default_factory=dict)
    dependents: dict[tuple[str, str], str] = field(default_factory=dict)
    record: Record | None = None
    log: list[tuple[str, Pod]] = field(default_factory=list)
    refuse_pods: str = ""
    refuse_dependents: str = ""
    registry_up: bool = True
    cached: bool = False
    schedulable: bool = True
    serial: int = 0
    writes: int = 0
    blame: set[Reason] = field(default_factory=set)
    starts: list[tuple[str, int, str]] = field(default_factory=list)
    closed: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    startable: dict[str, datetime] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    blind: set[str] = field(default_factory=set)

    # What a client can ask for

    def create_pod(self, job: Job, attempt: int, policies: dict[str, str]) -> Pod:
        """Admission comes before the name is looked up, as in the API server."""
        if self.refuse_pods:
            raise RefusedError(self.refuse_pods)
        name = pod_name(job.name, job.run, attempt)
        if name in self.pods:
            raise ExistsError
        uid = f"uid-{self._next()}"
        labels = {
            MANAGED_BY: MANAGER,
            SOURCE: SOURCE_NAME,
            JOB: job.name,
            RUN: job.run,
            ATTEMPT: str(attempt),
        }
        images = {"setup": SETUP_IMAGE, "main": IMAGE}
        specs = {
            c: {"name": c, "image": images[c], "imagePullPolicy": policies.get(c, "IfNotPresent")}
            for c in self.containers
        }
        pod: Pod = {
            "metadata": {
                "name": name,
                "namespace": job.namespace,
                "uid": uid,
                "labels": labels,
                "creationTimestamp": format_time(self.now),
            },
            "spec": {
                "schedulingGates": [{"name": GATE}],
                "initContainers": [specs[c] for c in self.containers if c != "main"],
                "containers": [specs["main"]],
            },
            "status": {"phase": "Pending"},
        }
        self.writes += 1
        self._put(pod, "ADDED")
        return copy.deepcopy(pod)

    def create_dependent(self, kind: str, name: str, owner: str) -> None:
        if self.refuse_dependents:
            raise RefusedError(self.refuse_dependents)
        if (kind, name) in self.dependents:
            raise ExistsError
        self.writes += 1
        self.dependents[kind, name] = owner

    def delete_dependent(self, kind: str, name: str, owner: str) -> None:
        if self.dependents.get((kind, name)) == owner:
            self.writes += 1
            del self.dependents[kind, name]

    def get(self, name: str) -> Pod | None:
        return copy.deepcopy(self.pods.get(name))

    def ungate(self, name: str, uid: str, index: int) -> Pod:
        pod = self.pods.get(name)
        if pod is None:
            raise GoneError
        gates = pod["spec"].get("schedulingGates", [])
        if uid_of(pod) != uid or index >= len(gates):
            raise ConflictError
        del pod["spec"]["schedulingGates"]
        self.startable[uid] = self.now
        self.writes += 1
        self._put(pod)
        return copy.deepcopy(pod)

    def delete_pod(self, wanted: DeletePod) -> None:
        pod = self.pods.get(wanted.pod)
        if pod is None:
            raise GoneError
        metadata = pod["metadata"]
        if (metadata["uid"], metadata["resourceVersion"]) != (wanted.uid, wanted.version):
            raise ConflictError
        self.writes += 1
        self.delete(pod, GRACE if wanted.grace is None else wanted.grace)

    def delete_by_hand(self, pod: Pod, grace: int) -> None:
        """What an attempt came to that was given up can't be told from a pod that is gone.

        Nor that there was one, if somebody has deleted its record as well.
        """
        self.blame.add(Reason.POD_DELETED)
        if self.record is None:
            self.forgotten.add(uid_of(pod))
        attempt = self._attempt_of(uid_of(pod))
        if attempt is not None and not attempt.is_open:
            self.blind.add(attempt.uid)
        self.delete(pod, grace)

    def stamp(self, wanted: StampExpiry) -> None:
        """A patch that changes nothing is no write."""
        pod = self.pods.get(wanted.pod)
        if pod is None or uid_of(pod) != wanted.uid:
            return
        annotations = pod["metadata"].setdefault("annotations", {})
        assert annotations.get(EXPIRES_AT, wanted.at) == wanted.at, "stamped with another time"
        if EXPIRES_AT not in annotations:
            annotations[EXPIRES_AT] = wanted.at
            self.writes += 1
            self._put(pod)

    def write_record(self, record: Record) -> Record:
        """Compare-and-swap, and back through JSON as the API would have it."""
        found = self.record
        if record.version and found is None:
            raise GoneError
        if not record.version and found is not None:
            raise ExistsError
        if found is not None and found.version != record.version:
            raise ConflictError
        if found is not None:
            assert record_to_data(found) != record_to_data(record), (
                f"a write that changes nothing: {record}"
            )
        self.writes += 1
        self._judge_record(record)
        return self._store(record)

    # What happens by itself, or by somebody's hand

    def delete(self, pod: Pod, grace: int) -> None:
        """As the server does: only what a node may still run gets its grace."""
        metadata = pod["metadata"]
        if not grace or not pod["spec"].get("nodeName") or is_over(pod):
            self._remove(pod)
        elif "deletionTimestamp" not in metadata:
            end = self.now + timedelta(seconds=grace)
            metadata["deletionTimestamp"] = format_time(end)
            metadata["deletionGracePeriodSeconds"] = grace
            self._put(pod)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @property
    def may_start(self) -> bool:
        """Whether some pod needs nothing but its node to start or to end."""
        return any(
            not is_over(pod)
            and "schedulingGates" not in pod["spec"]
            and self._missing_dependents(pod) is None
            for pod in self.pods.values()
        )

    def forget_record(self) -> None:
        """Somebody deletes the record: what it knew of pods that are gone is lost by intent."""
        self.record = None
        present = {uid_of(pod) for pod in self.pods.values()}
        self.forgotten |= {uid for _, _, uid in self.starts if uid not in present}

    def cancel_by_hand(self, record: Record) -> None:
        """As `engine cancel`: the record first, then the pod."""
        self.blame.add(Reason.CANCELLED)
        attempt = record.open_attempt
        self.write_record(cancelled(record, "cancelled by somebody", self.now))
        pod = next((p for p in self.pods.values() if attempt and uid_of(p) == attempt.uid), None)
        if pod is not None:
            self.delete_by_hand(pod, GRACE)

    def rerun_by_hand(self, record: Record) -> None:
        """As `engine rerun`: what ran before was another run, by intent."""
        self.write_record(rerun(record))
        self.forgotten |= {uid for run, _, uid in self.starts if run == record.run}

    def collect_garbage(self) -> None:
        living = {uid_of(pod) for pod in self.pods.values()}
        self.dependents = {at: uid for at, uid in self.dependents.items() if uid in living}

    def evict(self, pod: Pod) -> None:
        self.blame.add(Reason.EVICTED)
        pod["status"] |= {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
        self._stop(pod, 137)
        self._put(pod)

    def exit_main(self, pod: Pod, code: int) -> None:
        if code:
            self.blame.add(Reason.SCRIPT_FAILED)
        self._stop(pod, code)
        self._put(pod)

    def run_node(self, pod: Pod) -> None:
        """One step of the scheduler or the kubelet with this pod."""
        if "schedulingGates" in pod["spec"]:
            return
        if "deletionTimestamp" in pod["metadata"]:
            self._terminate(pod)
        elif is_over(pod):
            return
        elif ended := container_state(pod, "main").get("terminated"):
            pod["status"]["phase"] = "Failed" if ended["exitCode"] else "Succeeded"
            self._put(pod)
        elif not pod["spec"].get("nodeName"):
            if self.schedulable:
                pod["spec"]["nodeName"] = "node"
                self._put(pod)
        elif not is_running(pod):
            self._start_next(pod)
            self._put(pod)

    def _terminate(self, pod: Pod) -> None:
        """Stop it, then delete it: the kubelet's own delete has no grace and a time of its own."""
        if is_over(pod):
            now = format_time(self.now)
            pod["metadata"] |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
            self._put(pod)
            self._remove(pod)
            return
        if is_running(pod):
            self._stop(pod, 143)
        ended = container_state(pod, "main").get("terminated") or {}
        pod["status"]["phase"] = "Succeeded" if ended.get("exitCode") == 0 else "Failed"
        self._put(pod)

    def _start_next(self, pod: Pod) -> None:
        for spec in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
            name = spec["name"]
            state = container_state(pod, name)
            if state.get("terminated"):
                continue
            if (missing := self._missing_dependents(pod)) is not None:
                words = f'{missing.lower()} "{pod["metadata"]["name"]}" not found'
                waiting = {"reason": "CreateContainerConfigError", "message": words}
                self._set_state(pod, spec, {"waiting": waiting})
            elif self._can_pull(spec):
                self._start(pod, spec)
            else:
                self.blame.add(Reason.IMAGE_PULL_FAILED)
                again = state.get("waiting", {}).get("reason") == "ErrImagePull"
                words = f"failed to pull {spec['image']}: connection refused"
                if again:
                    words = f'Back-off pulling image "{spec["image"]}"'
                reason = "ImagePullBackOff" if again else "ErrImagePull"
                self._set_state(pod, spec, {"waiting": {"reason": reason, "message": words}})
            return

    def _start(self, pod: Pod, spec: dict[str, Any]) -> None:
        now = format_time(self.now)
        if spec["name"] == "main":
            self._judge_start(pod)
            pod["status"]["phase"] = "Running"
            self._set_state(pod, spec, {"running": {"startedAt": now}})
        else:
            done = {"exitCode": 0, "startedAt": now, "finishedAt": now}
            self._set_state(pod, spec, {"terminated": done})

    def _can_pull(self, spec: dict[str, Any]) -> bool:
        match spec["imagePullPolicy"]:
            case "Always":
                return self.registry_up
            case "Never":
                return self.cached
            case _:
                return self.cached or self.registry_up

    def _missing_dependents(self, pod: Pod) -> str | None:
        name, uid = pod["metadata"]["name"], uid_of(pod)
        return next((k for k in DEPENDENTS if self.dependents.get((k, name)) != uid), None)

    def _stop(self, pod: Pod, code: int) -> None:
        if is_running(pod):
            started = container_state(pod, "main")["running"]["startedAt"]
            end = {"exitCode": code, "startedAt": started, "finishedAt": format_time(self.now)}
            self._set_state(pod, pod["spec"]["containers"][0], {"terminated": end})

    def _set_state(self, pod: Pod, spec: dict[str, Any], state: dict[str, Any]) -> None:
        kind = "containerStatuses" if spec["name"] == "main" else "initContainerStatuses"
        pod["status"][kind] = [{"name": spec["name"], "image": spec["image"], "state": state}]

    def _put(self, pod: Pod, kind: str = "MODIFIED") -> None:
        pod["metadata"]["resourceVersion"] = str(self._next())
        self.pods[pod["metadata"]["name"]] = pod
        self.log.append((kind, copy.deepcopy(pod)))

    def _remove(self, pod: Pod) -> None:
        del self.pods[pod["metadata"]["name"]]
        pod["metadata"]["resourceVersion"] = str(self._next())
        self.log.append(("DELETED", copy.deepcopy(pod)))

    def _store(self, record: Record) -> Record:
        self.record = record_from_data(record.key, record_to_data(record), str(self._next()))
        return self.record

    def _next(self) -> int:
        self.serial += 1
        return self.serial

    def _attempt_of(self, uid: str) -> Attempt | None:
        attempts = self.record.attempts if self.record else ()
        return next((a for a in attempts if a.uid == uid), None)

    # The promises

    def _judge_start(self, pod: Pod) -> None:
        """Promises 1 and 2, at the moment a main container starts."""
        uid, labels = uid_of(pod), pod["metadata"]["labels"]
        run, number = labels[RUN], int(labels[ATTEMPT])
        assert self._missing_dependents(pod) is None, "started without its dependents"
        others = [p for p in self.pods.values() if p is not pod and is_running(p)]
        assert not others, f"two pods run at once: {others} and {pod}"
        if self.record is not None:
            known = {a.uid for a in self.record.attempts} | {u for _, u in self.closed}
            assert uid in known, f"started but not recorded: {pod}"
        for other_run, other_number, other_uid in self.starts:
            if other_run == run and not {other_uid, uid} & self.blind:
                if other_uid in self.forgotten:
                    continue
                before = self.closed.get((run, other_uid))
                assert other_number < number, f"attempt {number} started again"
                assert before is not None, f"started again before {other_uid} was closed"
                assert before.outcome in self.retried, f"started again after {before}"
        self.starts.append((run, number, uid))

    def _judge_record(self, record: Record) -> None:
        for attempt in record.attempts:
            if attempt.outcome is None:
                self.closed.pop((record.run, attempt.uid), None)
                continue
            if (record.run, attempt.uid) in self.closed:
                continue
            self.closed[record.run, attempt.uid] = attempt
            if attempt.outcome is Reason.START_TIMEOUT:
                since = self.startable.get(attempt.uid, self.now)
                lasted = (self.now - since).total_seconds()
                self.blame.add(Reason.START_TIMEOUT)
                assert lasted >= 0.9 * self.start_timeout, f"only {lasted} s to start: {attempt}"


def uid_of(pod: Pod) -> str:
    return str(pod["metadata"]["uid"])


def is_over(pod: Pod) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def is_running(pod: Pod) -> bool:
    return bool(container_state(pod, "main").get("running"))


def container_state(pod: Pod, name: str) -> dict[str, Any]:
    return next((s["state"] for s in _statuses(pod) if s["name"] == name), {})


def _statuses(pod: Pod) -> Iterator[dict[str, Any]]:
    yield from pod["status"].get("initContainerStatuses", ())
    yield from pod["status"].get("containerStatuses", ())
