"""Carry out one action of `decide`: each function is one step that the engine may die after.

Errors of the API go up unless they are themselves an answer: an object that exists is adopted, a
refusal is remembered, a lost race makes the engine look again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.events import find_pull_cause
from engine.cluster.records import read_record, write_record
from engine.decide.actions import (
    ConfirmGone,
    CreateDependents,
    CreatePod,
    DeletePod,
    FindCause,
    LookAgain,
    RestoreDependents,
    StampExpiry,
    Ungate,
    WriteRecord,
)
from engine.decide.record import Record, map_messages, record_to_data
from engine.decide.situation import Refusal, RefusalKind, gate_position
from engine.errors import (
    AdmissionRefusedError,
    AlreadyExistsError,
    ApiError,
    ConflictError,
    EngineError,
    ForbiddenError,
    NotFoundError,
    QuotaExceededError,
    UnauthorizedError,
)
from engine.informers.informer import PodInformer
from engine.reconcile.attempt_manifests import Rendering, attempt_manifests
from engine.reconcile.memory import JobMemory
from engine.refs import Ref, ref_of
from engine.render.manifests import Manifests
from engine.runtime.backoff import backoff
from engine.transform.set_owner_reference import set_owner_reference
from engine.wellknown import EXPIRES_AT, RUN

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
_REFUSALS = (ForbiddenError, AdmissionRefusedError, QuotaExceededError)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps, for one cluster."""

    client: Client
    rendering: Rendering
    pods: Callable[[str], PodInformer]
    redact: Callable[[str], str]

    def create_pod(self, memory: JobMemory, action: CreatePod) -> None:
        """Step 1. A pod of this name is adopted if it is this run's; `decide` looks at the rest."""
        job = memory.job
        manifests = self._manifests(memory, action.attempt, action.policies)
        memory.writes += 1
        memory.unanswered = True
        try:
            pod = api.create(self.client, manifests.pod)
        except AlreadyExistsError:
            existing = api.get(self.client, ref_of(manifests.pod))
            if existing is not None:
                self._adopt(memory, existing)
        except (QuotaExceededError, AdmissionRefusedError) as error:
            self._remember_refusal(memory, error, "")
        except EngineError as error:
            memory.unanswered = error.retryable
            raise
        else:
            memory.refusal = None
            self.pods(job.namespace).put(pod)
        memory.unanswered = False

    def create_dependents(self, memory: JobMemory, action: CreateDependents) -> None:
        """Step 2. What is there already must be this pod's; leftovers of a namesake go first."""
        manifests = self._manifests(memory, action.attempt, action.policies)
        for manifest in manifests.dependents:
            owned = set_owner_reference(manifest, pod=action.pod, uid=action.uid)
            memory.writes += 1
            try:
                self._create_owned(owned, action.uid)
            except (QuotaExceededError, AdmissionRefusedError) as error:
                self._remember_refusal(memory, error, action.uid)
                return
            except (ForbiddenError, UnauthorizedError):
                self._take_back(memory, action)
                raise
        memory.refusal, memory.refusals = None, 0
        memory.settled.add(action.uid)

    def restore_dependents(self, memory: JobMemory, action: RestoreDependents) -> list[Ref]:
        """What was missing and is there again; only names are read, never a secret's value.

        A refusal changes nothing: the pod goes on to say what it lacks, and its attempt ends so.
        """
        manifests = self._manifests(memory, action.attempt, action.policies)
        restored = []
        for manifest in manifests.dependents if memory.knows_secrets else ():
            ref = ref_of(manifest)
            with suppress(AlreadyExistsError, *_REFUSALS):
                if api.get_metadata(self.client, ref) is None:
                    memory.writes += 1
                    owned = set_owner_reference(manifest, pod=action.pod, uid=action.uid)
                    api.create(self.client, owned)
                    restored.append(ref)
        memory.looked_up[action.uid, action.reported] = self.client.now()
        return restored

    def write_record(self, memory: JobMemory, action: WriteRecord) -> bool:
        """Step 3 and 5. False when another engine wrote first: then its record counts.

        A write of our own whose reply was lost meets itself, which is no conflict.
        """
        record = map_messages(action.record, self.redact)
        memory.writes += 1
        try:
            memory.record = write_record(self.client, record)
        except (ConflictError, AlreadyExistsError):
            memory.record = read_record(self.client, action.record.key)
            return memory.record is not None and _same(memory.record, record)
        except NotFoundError:
            if not record.version:
                raise
            deleted_by_hand = replace(record, version="")
            memory.record = write_record(self.client, deleted_by_hand)
        return True

    def ungate(self, memory: JobMemory, action: Ungate) -> None:
        """Step 4. Only this very pod, only this very gate."""
        path = "/spec/schedulingGates"
        single = action.gate_count == 1
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": action.uid},
            {"op": "remove", "path": path if single else f"{path}/{action.gate_index}"},
        ]
        memory.writes += 1
        ref = Ref("Pod", memory.job.namespace, action.pod)
        try:
            pod = api.patch(self.client, ref, operations)
        except (NotFoundError, ConflictError, AdmissionRefusedError) as error:
            found = self._look_again(memory, action.pod, action.uid)
            unchanged = found and gate_position(found) == (action.gate_index, action.gate_count)
            if unchanged and isinstance(error, AdmissionRefusedError):
                self._remember_refusal(memory, error, action.uid)
            return
        self.pods(memory.job.namespace).put(pod)

    def delete_pod(self, memory: JobMemory, action: DeletePod) -> bool:
        """False for a pod that is no longer the one that was decided on."""
        memory.writes += 1
        ref = Ref("Pod", memory.job.namespace, action.pod)
        is_same = True
        try:
            api.delete(self.client, ref, uid=action.uid, grace=action.grace, version=action.version)
        except ConflictError:
            is_same = False
        self._look_again(memory, action.pod, action.uid)
        return is_same

    def look_again(self, memory: JobMemory, action: LookAgain) -> None:
        """Pod and record as they are now; what was known of them may have been old."""
        self._look_again(memory, action.pod, action.uid)
        memory.record = read_record(self.client, memory.job.key)
        memory.asked[action.uid] = self.client.now()

    def confirm_gone(self, memory: JobMemory, action: ConfirmGone) -> None:
        self._look_again(memory, action.pod, action.uid)

    def find_cause(self, memory: JobMemory, action: FindCause) -> None:
        ref = Ref("Pod", memory.job.namespace, action.pod)
        words = find_pull_cause(self.client, ref, action.uid, action.image)
        unknown = f'image "{action.image}" could not be pulled; the cause was not reported'
        memory.causes[action.uid, action.container] = words or unknown

    def stamp_expiry(self, memory: JobMemory, action: StampExpiry) -> None:
        """A pod that is gone or another one needs no stamp; a refusal of this one goes up."""
        path = "/metadata/annotations"
        key = EXPIRES_AT.replace("/", "~1")
        operations: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": action.uid},
            {"op": "add", "path": f"{path}/{key}", "value": action.at},
        ]
        if not action.annotated:
            operations.insert(1, {"op": "add", "path": path, "value": {}})
        memory.writes += 1
        ref = Ref("Pod", memory.job.namespace, action.pod)
        try:
            pod = api.patch(self.client, ref, operations)
        except (NotFoundError, ConflictError, AdmissionRefusedError) as error:
            found = self._look_again(memory, action.pod, action.uid)
            if found is not None and isinstance(error, AdmissionRefusedError):
                raise
            return
        self.pods(memory.job.namespace).put(pod)

    def _manifests(self, memory: JobMemory, attempt: int, policies: Mapping[str, str]) -> Manifests:
        """Rendered once for an attempt with these policies."""
        wanted = (attempt, tuple(sorted(policies.items())))
        if memory.manifests is None or memory.manifests[0] != wanted:
            manifests = attempt_manifests(
                self.rendering, memory.job, attempt, policies, memory.secrets
            )
            memory.manifests = (wanted, manifests)
        return memory.manifests[1]

    def _take_back(self, memory: JobMemory, action: CreateDependents) -> None:
        """Without the right to make what the pod owns it can't ever run; don't leave it gated."""
        record = memory.record
        attempt = record.open_attempt if record else None
        if attempt is not None and attempt.uid == action.uid:
            return
        ref = Ref("Pod", memory.job.namespace, action.pod)
        with suppress(EngineError):
            api.delete(self.client, ref, uid=action.uid, grace=0)

    def _create_owned(self, manifest: dict[str, Any], uid: str) -> None:
        try:
            api.create(self.client, manifest)
        except AlreadyExistsError:
            existing = api.get(self.client, ref_of(manifest))
        else:
            return
        if existing is not None:
            _check_ours(existing, manifest)
            owners = existing["metadata"].get("ownerReferences") or ()
            if any(owner["uid"] == uid for owner in owners):
                return
            api.delete(self.client, ref_of(manifest), uid=existing["metadata"]["uid"])
        api.create(self.client, manifest)

    def _adopt(self, memory: JobMemory, pod: dict[str, Any]) -> None:
        labels = pod["metadata"].get("labels") or {}
        if labels.get(RUN) != memory.job.run:
            raise _not_ours(pod)
        memory.refusal = None
        self.pods(memory.job.namespace).put(pod)

    def _look_again(self, memory: JobMemory, name: str, uid: str) -> dict[str, Any] | None:
        """The very pod, as the API has it now; None when it is gone."""
        pods = self.pods(memory.job.namespace)
        found = api.get(self.client, Ref("Pod", memory.job.namespace, name))
        if found is None or found["metadata"]["uid"] != uid:
            memory.gone.add(uid)
            pods.forget(memory.job.key, uid)
        if found is not None:
            pods.put(found)
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def _remember_refusal(self, memory: JobMemory, error: ApiError, uid: str) -> None:
        memory.refusals += 1
        quota = isinstance(error, QuotaExceededError)
        seconds = backoff(memory.refusals, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
        memory.refusal = Refusal(
            RefusalKind.QUOTA if quota else RefusalKind.ADMISSION,
            self.redact(error.cause),
            self.client.now() + timedelta(seconds=seconds),
            uid,
        )


def _same(found: Record, written: Record) -> bool:
    return record_to_data(found) == record_to_data(written)


def _check_ours(existing: dict[str, Any], manifest: dict[str, Any]) -> None:
    labels = existing["metadata"].get("labels") or {}
    if labels.get(RUN) != manifest["metadata"]["labels"][RUN]:
        raise _not_ours({**existing, "kind": manifest["kind"]})


def _not_ours(existing: dict[str, Any]) -> AdmissionRefusedError:
    ref = ref_of({"kind": "Pod", **existing})
    return AdmissionRefusedError(
        "an object of this name exists and was not made by this job",
        where=str(ref),
        hint="rename the job, or remove the object",
        status=409,
        reason="AlreadyExists",
    )
