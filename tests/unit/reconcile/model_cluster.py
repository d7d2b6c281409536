"""A small cluster in memory: what an API server, a kubelet and a garbage collector do to one job.

Every write of an engine arrives here, and here the promises are judged: at the moment a container
starts, a dependent is created, a record is written. `blame` explains each way a run may fail, so
that an end which nobody caused is found.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from engine.cluster.api_errors import api_error
from engine.cluster.records import CONFIG_MAP_RECORDS, KEY
from engine.errors import ApiError
from engine.lifecycle.record import Attempt, Record
from engine.lifecycle.record_codec import decode_record, encode_record
from engine.refs import GATE, parse_pod_name, pod_name, record_name
from engine.status.outcome import Reason
from engine.times import format_time
from engine.wellknown import ATTEMPT, FENCE, JOB, MANAGED_BY, MANAGER, RUN, SOURCE

SOURCE_NAME = "default"
NAMESPACE = "ci"
OTHERS_GATE = "kueue.x-k8s.io/admission"
SETUP_IMAGE = "registry.example/setup:1"
GRACE = 30
KINDS = {"secrets": "Secret", "configmaps": "ConfigMap"}
QUOTA_WORDS = 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1'
ADMISSION_WORDS = 'admission webhook "policy" denied the request'
RIGHTS_WORDS = 'configmaps is forbidden: User "x" cannot create resource "configmaps"'

Object = dict[str, Any]
Pod = Object


@dataclass
class Cluster:
    """State of the server and its node; `log` is what a watch delivers."""

    retried: frozenset[str] = frozenset()
    start_timeout: float = 600.0
    timeout: float = float("inf")
    """Seconds that the engine lets a pod run; the kubelet keeps none of them."""
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    pods: dict[str, Pod] = field(default_factory=dict)
    dependents: dict[tuple[str, str], Object] = field(default_factory=dict)
    record: Record | None = None
    log: list[tuple[str, Pod]] = field(default_factory=list)
    refuse_pods: str = ""
    refuse_dependents: str = ""
    refuse_records: str = ""
    registry_up: bool = True
    cached: bool = False
    schedulable: bool = True
    holds_pods: bool = False
    serial: int = 0
    writes: int = 0
    creates: int = 0
    """Of pods."""
    blame: set[Reason] = field(default_factory=set)
    starts: list[tuple[str, int, str]] = field(default_factory=list)
    closed: dict[tuple[str, str], Attempt] = field(default_factory=dict)
    startable: dict[str, datetime] = field(default_factory=dict)
    taken_up: dict[str, datetime] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    """UIDs of pods that have started in a run before one of another revision."""
    asks: int = 0
    """How often a process has read a revision that it had not."""
    changes: int = 0
    """How often a run of another revision took the record."""
    blind: set[str] = field(default_factory=set)
    let_go: set[str] = field(default_factory=set)
    """UIDs of pods that somebody's deleted record had, or whose gate was open by then."""
    forged: set[str] = field(default_factory=set)
    watched: set[str] = field(default_factory=set)
    fence: int = 0
    """Of the pod that started last, since the record was lost."""

    # What a client can ask for

    def read(self, resource: str, name: str) -> Object:
        """Answer a GET of an object, or of all pods; there are no nodes. Errors: NotFoundError."""
        if not resource:
            return {"items": [], "metadata": {}}
        if resource == "pods" and not name:
            version = {"resourceVersion": str(self.serial)}
            return {"items": [*filter(is_selected, self.pods.values())], "metadata": version}
        if resource == "jobspecs":
            return _not_found(name)
        if resource == "events":
            return {"items": [], "metadata": {}}
        if self._is_record(name):
            return _manifest(self.record) if self.record else _not_found(name)
        if resource == "pods":
            return self.pods.get(name) or _not_found(name)
        return self.dependents.get((KINDS[resource], name)) or _not_found(name)

    def write(
        self, method: str, resource: str, name: str, body: Any, *, dry_run: bool = False
    ) -> Object:
        """Answer anything else, as `engine.cluster.api` sends it. Errors: those of the API."""
        match method, resource:
            case "POST", "configmaps" if self._is_record(body["metadata"]["name"]):
                return self._write_record(body)
            case "PUT", "configmaps":
                return self._write_record(body)
            case "POST", "pods":
                return self._create_pod(body, dry_run=dry_run)
            case "POST", _:
                return self._create_dependent(body)
            case "PATCH", "pods":
                return self._patch_pod(name, body)
            case "PATCH", _:
                return self._patch_dependent(KINDS[resource], name, body)
            case "DELETE", "pods":
                return self._delete_pod(name, body)
            case "DELETE", _:
                return self._delete_dependent(KINDS[resource], name, body)
        raise AssertionError(f"not to be expected: {method} {resource}")

    def _create_pod(self, pod: Pod, *, dry_run: bool = False) -> Pod:
        """Admission comes before the name is looked up, as in the API server."""
        if self.refuse_pods:
            raise _refusal(self.refuse_pods)
        if pod["metadata"]["name"] in self.pods:
            raise _error("POST", 409, "AlreadyExists")
        created = format_time(self.now)
        pod["metadata"] |= {"uid": f"uid-{self._next()}", "creationTimestamp": created}
        pod["spec"].setdefault("initContainers", [])
        for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
            container.setdefault("imagePullPolicy", "IfNotPresent")
        pod["status"] = {"phase": "Pending"}
        if self.holds_pods:
            pod["spec"]["schedulingGates"].insert(0, {"name": OTHERS_GATE})
        if dry_run:
            return pod
        self.writes += 1
        self.creates += 1
        self._put(pod)
        return pod

    def _create_dependent(self, manifest: Object) -> Object:
        if self.refuse_dependents:
            raise _refusal(self.refuse_dependents)
        place = manifest["kind"], manifest["metadata"]["name"]
        if place in self.dependents:
            raise _error("POST", 409, "AlreadyExists")
        manifest["metadata"]["uid"] = f"uid-{self._next()}"
        assert owner_of(manifest) not in self.forged, "a stranger's pod got a Secret"
        self.writes += 1
        self.dependents[place] = manifest
        return manifest

    def _patch_dependent(self, kind: str, name: str, change: Object) -> Object:
        found = self.dependents.get((kind, name)) or _not_found(name)
        if self._update(found, change):
            self.writes += 1
        return found

    def _delete_dependent(self, kind: str, name: str, options: Object) -> Object:
        found = self.dependents.get((kind, name)) or _not_found(name)
        if uid_of(found) != options["preconditions"]["uid"]:
            raise _error("DELETE", 409, "Conflict")
        self.writes += 1
        return self.dependents.pop((kind, name))

    def _patch_pod(self, name: str, body: list[Object] | Object) -> Pod:
        """Open the gate, or update the pod in place.

        A patch of nothing is no write.
        """
        pod = self.pods.get(name) or _not_found(name)
        if isinstance(body, list):
            test, *changes = body
            if test["value"] != uid_of(pod):
                raise _error("PATCH", 422, "Invalid")
            self._open_gate(pod, changes)
        elif not self._update(pod, body):
            return pod
        self.writes += 1
        self._put(pod)
        return pod

    def _update(self, found: Object, change: Object) -> bool:
        """Whether a merge patch changes a label, an annotation or the deadline."""
        metadata = change["metadata"]
        if metadata["uid"] != uid_of(found):
            raise _error("PATCH", 422, "Invalid")
        before = copy.deepcopy(found)
        if "spec" in change:
            (deadline,) = change["spec"].values()
            longest = found["spec"]["activeDeadlineSeconds"]
            assert deadline < longest, "a deadline can only become shorter"
            found["spec"]["activeDeadlineSeconds"] = deadline
        for part in ("labels", "annotations"):
            values = {**(found["metadata"].get(part) or {}), **metadata[part]}
            found["metadata"][part] = {k: v for k, v in values.items() if v is not None}
        return found != before

    def _open_gate(self, pod: Pod, operations: list[Object]) -> None:
        names = [gate["name"] for gate in pod["spec"].get("schedulingGates", ())]
        test, *marks, change = operations
        index = int(test["path"].split("/")[3])
        if names[index : index + 1] != [test["value"]]:
            raise _error("PATCH", 422, "Invalid")
        whole = "/spec/schedulingGates"
        assert test["value"] == GATE
        assert change["path"] == (whole if names == [GATE] else f"{whole}/{index}")
        assert bool(marks) == (names != [GATE]), "its TTL counts while others hold it back"
        assert self._missing_dependents(pod) is None, "let go without its dependents"
        self._remove_gate(pod, GATE)

    def _remove_gate(self, pod: Pod, name: str) -> None:
        left = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != name]
        pod["spec"]["schedulingGates"] = left
        if not left:
            del pod["spec"]["schedulingGates"]
            self.startable[uid_of(pod)] = self.now

    def _delete_pod(self, name: str, options: Object) -> Pod:
        pod = self.pods.get(name) or _not_found(name)
        wanted, metadata = options["preconditions"], pod["metadata"]
        if wanted != {key: metadata[key] for key in wanted}:
            raise _error("DELETE", 409, "Conflict")
        assert "resourceVersion" in wanted, "deleted although it may have started since"
        assert uid_of(pod) not in self.forged or "schedulingGates" in pod["spec"], (
            f"a stranger's pod was deleted: {pod}"
        )
        self.writes += 1
        self.delete(pod, options.get("gracePeriodSeconds", GRACE))
        return pod

    def _write_record(self, manifest: Object) -> Object:
        """A quota is asked about creates, before it is found that the record is there."""
        is_create = "resourceVersion" not in manifest["metadata"]
        if self.refuse_records and (is_create or self.refuse_records != "quota"):
            raise _refusal(self.refuse_records)
        manifest["metadata"].setdefault("resourceVersion", "")
        record = CONFIG_MAP_RECORDS.parse(manifest)
        assert record is not None
        return _manifest(self.write_record(record))

    def _is_record(self, name: str) -> bool:
        return name.endswith(record_name(""))

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

    def write_record(self, record: Record) -> Record:
        """Compare-and-swap, and back through JSON as the API would have it."""
        found = self.record
        if record.version and found is None:
            raise _error("PUT", 404, "NotFound")
        if not record.version and found is not None:
            raise _error("POST", 409, "AlreadyExists")
        if found is not None and found.version != record.version:
            raise _error("PUT", 409, "Conflict")
        if found is not None:
            assert encode_record(found) != encode_record(record), (
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

    def let_everything_through(self) -> None:
        self.refuse_pods = self.refuse_dependents = self.refuse_records = ""
        self.schedulable = True
        self.let_pods_go()

    def let_pods_go(self) -> None:
        """Whoever holds pods back with a gate of their own does so no more."""
        self.holds_pods = False
        for pod in self.pods.values():
            if {"name": OTHERS_GATE} in pod["spec"].get("schedulingGates", ()):
                self._remove_gate(pod, OTHERS_GATE)
                self._put(pod)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @property
    def forged_pods(self) -> list[Pod]:
        """Those that are there."""
        return [pod for pod in self.pods.values() if uid_of(pod) in self.forged]

    @property
    def running(self) -> list[Pod]:
        """Pods whose main container runs, but for forged ones."""
        running = filter(is_running, self.pods.values())
        return [pod for pod in running if uid_of(pod) not in self.forged]

    @property
    def may_start(self) -> bool:
        """Whether some pod needs nothing but its node to start or to end."""
        return any(
            not is_over(pod)
            and "schedulingGates" not in pod["spec"]
            and uid_of(pod) not in self.forged
            and self._missing_dependents(pod) is None
            for pod in self.pods.values()
        )

    def forget_record(self) -> None:
        """Somebody deletes the record: what it knew of pods that are gone is lost by intent."""
        pods = self.pods.values()
        self.let_go |= {uid_of(pod) for pod in pods if "schedulingGates" not in pod["spec"]}
        self.let_go |= {a.uid for a in self.record.attempts} if self.record else set()
        self.record, self.fence = None, 0
        present = {
            uid_of(pod) for pod in self.pods.values() if "deletionTimestamp" not in pod["metadata"]
        }
        self.forgotten |= {uid for _, _, uid in self.starts if uid not in present}

    def cancel_by_hand(self, record: Record) -> None:
        """As `engine cancel`: the record first, then the pod."""
        self.blame.add(Reason.CANCELLED)
        attempt = record.open_attempt
        self.write_record(record.cancelled("cancelled by somebody", self.now))
        pod = next((p for p in self.pods.values() if attempt and uid_of(p) == attempt.uid), None)
        if pod is not None:
            self.delete_by_hand(pod, GRACE)

    def rerun_by_hand(self, record: Record) -> None:
        """As `engine rerun`: what ran before was another run, by intent."""
        self.asks += 1
        self.write_record(record.again())
        self.forgotten |= {uid for run, _, uid in self.starts if run == record.run}

    def forge(self, job: str, run: str, number: int, *, gated: bool) -> None:
        """Somebody makes a pod that looks like one of the engine's."""
        name = pod_name(job, run, number)
        own = {MANAGED_BY: MANAGER, SOURCE: SOURCE_NAME, JOB: job, RUN: run, ATTEMPT: str(number)}
        if name in self.pods:
            return
        uid = f"uid-{self._next()}"
        self.forged.add(uid)
        created = {"uid": uid, "creationTimestamp": format_time(self.now)}
        spec: Object = {"containers": [{"name": "main", "image": "evil"}], "initContainers": []}
        if gated:
            spec["schedulingGates"] = [{"name": GATE}]
        metadata = {"name": name, "namespace": NAMESPACE, "labels": own, **created}
        pod = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        if not gated:
            pod["status"] = {"phase": "Running"}
            running = {"running": {"startedAt": format_time(self.now)}}
            self._set_state(pod, spec["containers"][0], running)
        self._put(pod)

    def heed(self, words: str) -> None:
        """Somebody removes the pod that an engine has refused by its name: the job runs anew."""
        for pod in [pod for name, pod in self.pods.items() if name in words]:
            self.forgotten.add(uid_of(pod))
            self.delete_by_hand(pod, 0)

    def remove_forged(self) -> None:
        """Whoever made them takes them back."""
        for pod in self.forged_pods:
            self._remove(pod)

    def change_label(self, pod: Pod, key: str, value: str) -> None:
        """Somebody changes a label of a pod, or removes it."""
        labels = pod["metadata"]["labels"]
        labels.pop(key, None)
        if value:
            labels[key] = value
        self._put(pod)

    def collect_garbage(self) -> None:
        living = {uid_of(pod) for pod in self.pods.values()}
        self.dependents = {at: o for at, o in self.dependents.items() if owner_of(o) in living}

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
        if "schedulingGates" in pod["spec"] or uid_of(pod) in self.forged:
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
                pod["status"]["startTime"] = format_time(self.now)
                self.taken_up[uid_of(pod)] = self.now
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
        owners = {k: owner_of(self.dependents.get((k, name))) for k in KINDS.values()}
        return next((kind for kind, owner in owners.items() if owner != uid), None)

    def _stop(self, pod: Pod, code: int) -> None:
        if is_running(pod):
            started = container_state(pod, "main")["running"]["startedAt"]
            end = {"exitCode": code, "startedAt": started, "finishedAt": format_time(self.now)}
            self._set_state(pod, pod["spec"]["containers"][0], {"terminated": end})

    def _set_state(self, pod: Pod, spec: dict[str, Any], state: dict[str, Any]) -> None:
        kind = "containerStatuses" if spec["name"] == "main" else "initContainerStatuses"
        pod["status"][kind] = [{"name": spec["name"], "image": spec["image"], "state": state}]

    def _put(self, pod: Pod) -> None:
        """A watch by labels tells of a pod that it no longer picks as of one that is gone."""
        pod["metadata"]["resourceVersion"] = str(self._next())
        self.pods[pod["metadata"]["name"]] = pod
        if is_selected(pod):
            kind = "MODIFIED" if uid_of(pod) in self.watched else "ADDED"
            self.watched.add(uid_of(pod))
            self.log.append((kind, copy.deepcopy(pod)))
        else:
            self._unwatch(pod)

    def _remove(self, pod: Pod) -> None:
        del self.pods[pod["metadata"]["name"]]
        pod["metadata"]["resourceVersion"] = str(self._next())
        self._unwatch(pod)

    def _unwatch(self, pod: Pod) -> None:
        if uid_of(pod) in self.watched:
            self.watched.remove(uid_of(pod))
            self.log.append(("DELETED", copy.deepcopy(pod)))

    def _store(self, record: Record) -> Record:
        self.record = decode_record(record.key, encode_record(record), str(self._next()))
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
        uid, parsed = uid_of(pod), parse_pod_name(pod["metadata"]["name"])
        assert parsed is not None
        _, run, number = parsed
        assert self._missing_dependents(pod) is None, "started without its dependents"
        others = [other for other in self.running if other is not pod]
        assert not others, f"two pods run at once: {others} and {pod}"
        if self.record is not None:
            known = {a.uid for a in self.record.attempts} | {u for _, u in self.closed}
            assert uid in known | self.let_go, f"started but not recorded: {pod}"
        for other_run, other_number, other_uid in self.starts:
            if other_run == run and not {other_uid, uid} & self.blind:
                if other_uid in self.forgotten:
                    continue
                before = self.closed.get((run, other_uid))
                assert other_number < number, f"attempt {number} started again"
                if other_uid in self.replaced:
                    continue
                assert before is not None, f"started again before {other_uid} was closed"
                assert before.outcome in self.retried, f"started again after {before}"
        self.starts.append((run, number, uid))
        fence = int((pod["metadata"].get("annotations") or {}).get(FENCE, 0))
        assert uid in self.forged or fence > self.fence, "started with the fence of another pod"
        self.fence = max(fence, self.fence)

    def _judge_record(self, record: Record) -> None:
        if self.record is not None and self.record.run != record.run:
            self.replaced |= {uid for _, _, uid in self.starts}
            self.changes += 1
            assert self.changes <= self.asks, "two processes replace each other's runs"
        elif self.record is not None and (
            self.record.reason is Reason.SUPERSEDED is not record.reason
        ):
            self.replaced |= {uid for _, _, uid in self.starts}
            self.changes += 1
            assert self.changes <= self.asks, "a revision was asked for once more than read"
        for attempt in record.attempts:
            assert attempt.uid not in self.forged, f"a stranger's pod was recorded: {record}"
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
            if attempt.outcome is Reason.DEADLINE_EXCEEDED:
                lasted = (self.now - self.taken_up[attempt.uid]).total_seconds()
                self.blame.add(Reason.DEADLINE_EXCEEDED)
                assert lasted >= self.timeout, f"only {lasted} s to run: {attempt}"


def uid_of(pod: Pod) -> str:
    return str(pod["metadata"]["uid"])


def owner_of(dependent: Object | None) -> str:
    """UID of its one owner; "" without one."""
    owners: list[Object] = dependent["metadata"].get("ownerReferences", []) if dependent else []
    return str(owners[0]["uid"]) if len(owners) == 1 else ""


def is_selected(pod: Pod) -> bool:
    """Whether the engine's lists and watches have it."""
    labels: dict[str, str] = pod["metadata"]["labels"]
    return labels.get(MANAGED_BY) == MANAGER and labels.get(SOURCE) == SOURCE_NAME


def is_over(pod: Pod) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def is_running(pod: Pod) -> bool:
    return bool(container_state(pod, "main").get("running"))


def container_state(pod: Pod, name: str) -> dict[str, Any]:
    return next((s["state"] for s in _statuses(pod) if s["name"] == name), {})


def _statuses(pod: Pod) -> Iterator[dict[str, Any]]:
    yield from pod["status"].get("initContainerStatuses", ())
    yield from pod["status"].get("containerStatuses", ())


def _manifest(record: Record) -> Object:
    metadata = {
        "name": record_name(record.key.name),
        "namespace": record.key.namespace,
        "labels": {JOB: record.key.name},
        "resourceVersion": record.version,
    }
    return {"metadata": metadata, "data": {KEY: encode_record(record)}}


def _error(method: str, status: int, reason: str, message: str = "") -> ApiError:
    body = {"kind": "Status", "reason": reason, "message": message or reason}
    return api_error(method, status, json.dumps(body), None)


def _refusal(what: str) -> ApiError:
    words = {"quota": QUOTA_WORDS, "admission": ADMISSION_WORDS, "rights": RIGHTS_WORDS}[what]
    return _error("POST", 403, "Forbidden", words)


def _not_found(name: str) -> NoReturn:
    raise _error("GET", 404, "NotFound", f'"{name}" not found')
