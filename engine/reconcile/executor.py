"""Execute one action of `decide`: each method is one step that the engine may die after.

Errors of the API go up unless they are themselves an answer: an object that exists is adopted, a
rejection is remembered, a lost race makes the engine look again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.events import find_pull_cause
from engine.cluster.records import read_record, write_record
from engine.decide.actions import (
    AdoptPod,
    ConfirmDeleted,
    CreateDependents,
    CreatePod,
    DeletePod,
    FindPullCause,
    MarkBack,
    RefreshPod,
    RemoveSchedulingGate,
    RestoreDependents,
    RestoreLabels,
    StampExpiry,
    Step,
    WriteRecord,
)
from engine.decide.adoption import first_difference
from engine.decide.record import Record, map_messages
from engine.decide.record_codec import encode_record
from engine.decide.situation import Rejection, RejectionKind, foreign_label, gate_position
from engine.errors import (
    AdmissionRefusedError,
    AlreadyExistsError,
    ConflictError,
    EngineError,
    ForbiddenError,
    NotFoundError,
    OwnershipError,
    QuotaExceededError,
    UnauthorizedError,
)
from engine.informers.factory import InformerFactory
from engine.reconcile.image_locator import ImageLocator
from engine.reconcile.job_state import JobState
from engine.reconcile.missing_secret import missing_secret
from engine.reconcile.rendering import RenderConfig, render_attempt
from engine.reconcile.reporter import AttemptReporter
from engine.refs import GATE, Ref, ref_of
from engine.render.manifests import Manifests
from engine.runtime.backoff import backoff
from engine.telemetry.events import DependentRestored, ErrorReported, LabelsChanged, PodRemoved
from engine.transform.manifest_edit import with_field
from engine.transform.prefer_nodes import prefer_nodes
from engine.transform.set_owner_reference import set_owner_reference
from engine.wellknown import EXPIRES_AT, RUN, SCHEDULING, TTL_FROM

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
_MOST_CONFLICTS = 5
_Refusal = QuotaExceededError | AdmissionRefusedError | ForbiddenError | UnauthorizedError
_REFUSALS = (QuotaExceededError, AdmissionRefusedError, ForbiddenError)


@dataclass(frozen=True, slots=True)
class ActionExecutor:
    """Executes actions on one cluster; `EXECUTORS` says which method each kind of them has.

    Errors: those of the API; what has been written stays valid.
    """

    client: Client
    informers: InformerFactory
    config: RenderConfig
    locator: ImageLocator
    reporter: AttemptReporter
    redact: Callable[[str], str]

    def execute(self, state: JobState, action: Step) -> None:
        """Take the one step that `action` is."""
        EXECUTORS[type(action)](self, state, action)

    def create_pod(self, state: JobState, action: CreatePod) -> None:
        """Step 1. A pod of this name that says it is this source's is for `decide` to judge."""
        job = state.job
        manifests = self._manifests(state, action.attempt, action.policies)
        hosts = map(self.locator.hosts_with, action.images)
        manifest = prefer_nodes(manifests.pod, hosts)
        state.writes += 1
        state.observed.create_unanswered = True
        try:
            pod = api.create(self.client, manifest)
        except AlreadyExistsError as error:
            existing = api.get(self.client, ref_of(manifests.pod))
            if existing is not None:
                self._take_in(state, existing)
            else:
                _count_conflict(state, error)
        except (QuotaExceededError, AdmissionRefusedError) as error:
            self._store_rejection(state, error, "")
        except EngineError as error:
            state.observed.create_unanswered = error.retryable
            raise
        else:
            state.observed.rejection = None
            version = state.record.version if state.record is not None else ""
            state.observed.created[pod["metadata"]["uid"]] = version
            self.informers.pods(job.namespace).upsert(pod)
        state.observed.create_unanswered = False

    def adopt_pod(self, state: JobState, action: AdoptPod) -> None:
        """A dry run passes the same defaults and admission, under a name that is free.

        Errors: OwnershipError when the pod is another, or nobody can tell.
        """
        pod = self._get_pod(state, action.pod, action.uid)
        if pod is None:
            return
        manifest = self._manifests(state, action.attempt, action.policies).pod
        name = f"{action.pod}-dry-run"
        try:
            expected = api.create(
                self.client, with_field(manifest, "metadata", "name", value=name), dry_run=True
            )
        except QuotaExceededError as error:
            self._store_rejection(state, error, "")
            return
        except AdmissionRefusedError as error:
            raise _unrecorded(action, f"can't be compared with a dry run: {error.cause}") from error
        difference = first_difference(pod, expected, manifest)
        if difference:
            raise _unrecorded(action, f"differs from what its spec makes in {difference}")
        state.observed.rejection = None
        state.observed.adopted |= {action.uid}

    def restore_labels(self, state: JobState, action: RestoreLabels) -> None:
        """A rejection is reported once; the pod is asked for by its name then."""
        path, labels = "/metadata/labels", action.labels
        operations: list[dict[str, Any]] = [
            {"op": "add", "path": f"{path}/{key.replace('/', '~1')}", "value": value}
            for key, value in labels.items()
        ]
        if not action.labelled:
            operations = [{"op": "add", "path": path, "value": dict(labels)}]
        refused = self._patch_pod(state, action, operations)
        words = refused[1].cause if refused is not None else ""
        is_first = action.uid not in state.observed.labels_restored_at
        state.observed.labels_restored_at[action.uid] = self.client.now()
        if is_first or not words:
            names = tuple(labels)
            self.reporter.emit(LabelsChanged(state.job.key, action.pod, names, self.redact(words)))

    def create_dependents(self, state: JobState, action: CreateDependents) -> None:
        """Step 2. What is there already must be this pod's; leftovers of a namesake go first.

        Others' Secrets that the pod refers to are looked up now: a node would only find out once it
        has the images, and of a login never tell.
        """
        manifests = self._manifests(state, action.attempt, action.policies)
        for manifest in manifests.dependents:
            owned = set_owner_reference(manifest, pod=action.pod, uid=action.uid)
            state.writes += 1
            try:
                if not self._create_owned(state, owned, action):
                    return
            except (*_REFUSALS, UnauthorizedError) as error:
                self._store_rejection(state, error, action.uid)
                return
        missing = missing_secret(self.client, state.job)
        if missing:
            state.observed.secrets_missing[action.uid] = missing
        state.observed.rejection = None
        state.observed.dependents_ready |= {action.uid}

    def restore_dependents(self, state: JobState, action: RestoreDependents) -> None:
        """What is missing is made again.

        A rejection changes nothing: the pod goes on to say what it lacks, and its attempt ends so.
        """
        for manifest in self.missing_dependents(state, action):
            state.writes += 1
            owned = set_owner_reference(manifest, pod=action.pod, uid=action.uid)
            with suppress(AlreadyExistsError, *_REFUSALS):
                api.create(self.client, owned)
                self.reporter.emit(DependentRestored(state.job.key, ref_of(manifest)))
        state.observed.dependents_looked_up[action.uid, action.reported] = self.client.now()

    def missing_dependents(
        self, state: JobState, action: RestoreDependents
    ) -> Iterator[dict[str, Any]]:
        """What the pod should own and isn't there, as far as that may be asked.

        Only names are read, never a secret's value.
        """
        manifests = self._manifests(state, action.attempt, action.policies)
        for manifest in manifests.dependents if state.rendered.secrets_resolved else ():
            with suppress(*_REFUSALS):
                if api.get_metadata(self.client, ref_of(manifest)) is None:
                    yield manifest

    def write_record(self, state: JobState, action: WriteRecord) -> None:
        """Step 3 and 5. When somebody else wrote first, that record counts; an end that it has,
        such as that of `engine cancel`, is reported as the end.

        A write of our own whose reply was lost meets itself, which is no conflict, and no rejection
        either: a quota is asked before it is found that the record is there.
        """
        before, record = state.record, map_messages(action.record, self.redact)
        version = before.version if before is not None else ""
        state.writes += 1
        try:
            written = self._write(record)
        except (ConflictError, AlreadyExistsError, *_REFUSALS) as error:
            found = read_record(self.client, record.key)
            is_unchanged = found is None or found.version == version
            if isinstance(error, _REFUSALS) and is_unchanged:
                self._store_rejection(state, error, record_version=version)
                return
            if found is None or not _same(found, record):
                state.record = found
                _count_conflict(state, error)
                if not is_unchanged and found is not None and not found.state.is_final:
                    words = "another engine wrote this job's record first"
                    self.reporter.emit(ErrorReported(state.job.key, words, retrying=True))
                return
            written = found
        state.record = written
        self.reporter.report_record(state, before, written)

    def mark_back(self, state: JobState, action: MarkBack) -> None:
        """The record as it is now; whoever wrote it meanwhile may have taken the mark out."""
        try:
            state.record = write_record(self.client, action.record)
        except (ConflictError, NotFoundError) as error:
            _count_conflict(state, error)
            state.record = read_record(self.client, state.job.key)

    def remove_scheduling_gate(self, state: JobState, action: RemoveSchedulingGate) -> None:
        """Step 4. Only this very pod, only this very gate, wherever it stands meanwhile.

        A pod that others go on holding is marked with the same patch: its TTL has yet to begin.
        """
        path = "/spec/schedulingGates"
        ours = f"{path}/{action.gate_index}"
        operations = [{"op": "test", "path": f"{ours}/name", "value": GATE}]
        if action.gate_count > 1:
            mark = f"/metadata/annotations/{TTL_FROM.replace('/', '~1')}"
            operations.append({"op": "add", "path": mark, "value": SCHEDULING})
        operations.append({"op": "remove", "path": path if action.gate_count == 1 else ours})
        refused = self._patch_pod(state, action, operations)
        if refused is None:
            state.observed.rejections = 0
            return
        pod, error = refused
        if gate_position(pod) == (action.gate_index, action.gate_count):
            self._store_rejection(state, error, action.uid)

    def delete_pod(self, state: JobState, action: DeletePod) -> None:
        """Step 5. A pod that is no longer the one that was decided on is spared."""
        state.writes += 1
        ref = Ref("Pod", state.job.namespace, action.pod)
        is_same = True
        try:
            api.delete(self.client, ref, uid=action.uid, grace=action.grace, version=action.version)
        except ConflictError as error:
            _count_conflict(state, error)
            is_same = False
        self._get_pod(state, action.pod, action.uid)
        if is_same:
            self.reporter.emit(PodRemoved(state.job.key, action.pod, action.why))

    def refresh(self, state: JobState, action: RefreshPod) -> None:
        """Pod and record as they are now; what was known of them may have been old."""
        self._get_pod(state, action.pod, action.uid)
        state.record = read_record(self.client, state.job.key)
        state.observed.refreshed_at[action.uid] = self.client.now()

    def confirm_deleted(self, state: JobState, action: ConfirmDeleted) -> None:
        """Whether the pod is gone, from the API itself."""
        self._get_pod(state, action.pod, action.uid)

    def find_cause(self, state: JobState, action: FindPullCause) -> None:
        """The first real reason of a pull failure, from the Events."""
        ref = Ref("Pod", state.job.namespace, action.pod)
        words = find_pull_cause(self.client, ref, action.uid, action.image)
        unknown = f'image "{action.image}" could not be pulled; the cause was not reported'
        state.observed.pull_causes[action.uid, action.container] = words or unknown

    def stamp_expiry(self, state: JobState, action: StampExpiry) -> None:
        """A pod that is gone or another one needs no stamp; a rejection of this one goes up."""
        path = "/metadata/annotations"
        key = EXPIRES_AT.replace("/", "~1")
        operations: list[dict[str, Any]] = [
            {"op": "add", "path": f"{path}/{key}", "value": action.at}
        ]
        if not action.annotated:
            operations.insert(0, {"op": "add", "path": path, "value": {}})
        refused = self._patch_pod(state, action, operations)
        if refused is not None:
            raise refused[1]

    def _patch_pod(
        self,
        state: JobState,
        action: RemoveSchedulingGate | RestoreLabels | StampExpiry,
        operations: list[dict[str, Any]],
    ) -> tuple[dict[str, Any], AdmissionRefusedError | ForbiddenError] | None:
        """Patch this very pod; if that is refused, the pod as it is now, and the refusal."""
        this_pod = {"op": "test", "path": "/metadata/uid", "value": action.uid}
        state.writes += 1
        ref = Ref("Pod", state.job.namespace, action.pod)
        try:
            pod = api.patch(self.client, ref, [this_pod, *operations])
        except (NotFoundError, ConflictError, AdmissionRefusedError, ForbiddenError) as error:
            found = self._get_pod(state, action.pod, action.uid)
            if found is not None and isinstance(error, AdmissionRefusedError | ForbiddenError):
                return found, error
            if found is not None:
                _count_conflict(state, error)
            return None
        self.informers.pods(state.job.namespace).upsert(pod)
        return None

    def _manifests(self, state: JobState, attempt: int, policies: Mapping[str, str]) -> Manifests:
        """Rendered once for an attempt with these policies."""
        wanted, rendered = (attempt, tuple(sorted(policies.items()))), state.rendered
        if rendered.manifests is None or rendered.attempt != wanted:
            rendered.manifests = render_attempt(
                self.config, state.job, attempt, policies, rendered.secrets
            )
            rendered.attempt = wanted
        return rendered.manifests

    def _write(self, record: Record) -> Record:
        """One that somebody has deleted meanwhile is made again."""
        try:
            return write_record(self.client, record)
        except NotFoundError:
            if not record.version:
                raise
            return write_record(self.client, replace(record, version=""))

    def _create_owned(
        self, state: JobState, manifest: dict[str, Any], action: CreateDependents
    ) -> bool:
        """Whether the pod has it now.

        What has this name already stays only if it is this pod's and says the same, or if the pod
        is gone: it may be that of the next one, which another engine has made.
        """
        try:
            api.create(self.client, manifest)
        except AlreadyExistsError:
            existing = api.get(self.client, ref_of(manifest))
        else:
            return True
        if existing is not None:
            _check_ours(existing, manifest)
            owners = [o["uid"] for o in existing["metadata"].get("ownerReferences") or ()]
            if action.uid in owners and _has_content(existing, manifest):
                return True
            if self._get_pod(state, action.pod, action.uid) is None:
                return False
            api.delete(self.client, ref_of(manifest), uid=existing["metadata"]["uid"])
        api.create(self.client, manifest)
        return True

    def _take_in(self, state: JobState, pod: dict[str, Any]) -> None:
        """Its labels may have been changed, and its UID be in a record that is newer than ours."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if uid not in state.observed.created and foreign_label(pod, self.config.source):
            state.record = read_record(self.client, state.job.key)
            if state.record is None or uid not in state.record.pod_uids:
                raise _not_ours(pod)
        state.observed.rejection = None
        self._get_pod(state, name, uid)

    def _get_pod(self, state: JobState, name: str, uid: str) -> dict[str, Any] | None:
        """The very pod, as the API has it now; None when it is gone."""
        found = self.informers.pods(state.job.namespace).get(name, uid)
        if found is None:
            state.observed.deleted_uids |= {uid}
        return found

    def _store_rejection(
        self, state: JobState, error: _Refusal, uid: str = "", record_version: str | None = None
    ) -> None:
        state.observed.rejections += 1
        seconds = backoff(state.observed.rejections, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
        state.observed.rejection = Rejection(
            _kind_of(error),
            self.redact(error.cause),
            self.client.now() + timedelta(seconds=seconds),
            uid,
            error.hint,
            record_version,
        )


EXECUTORS: Mapping[type[Step], Callable[[ActionExecutor, JobState, Any], None]] = {
    CreatePod: ActionExecutor.create_pod,
    AdoptPod: ActionExecutor.adopt_pod,
    RestoreLabels: ActionExecutor.restore_labels,
    CreateDependents: ActionExecutor.create_dependents,
    RestoreDependents: ActionExecutor.restore_dependents,
    WriteRecord: ActionExecutor.write_record,
    MarkBack: ActionExecutor.mark_back,
    RemoveSchedulingGate: ActionExecutor.remove_scheduling_gate,
    DeletePod: ActionExecutor.delete_pod,
    ConfirmDeleted: ActionExecutor.confirm_deleted,
    RefreshPod: ActionExecutor.refresh,
    FindPullCause: ActionExecutor.find_cause,
    StampExpiry: ActionExecutor.stamp_expiry,
}
"""Every step that `decide` can ask for."""


def _kind_of(error: _Refusal) -> RejectionKind:
    match error:
        case QuotaExceededError():
            return RejectionKind.QUOTA
        case AdmissionRefusedError():
            return RejectionKind.ADMISSION
    return RejectionKind.RIGHTS


def _count_conflict(state: JobState, error: EngineError) -> None:
    """Errors: ConflictError for one more in a reconcile than a race can explain."""
    state.conflicts += 1
    if state.conflicts > _MOST_CONFLICTS:
        words = f"the server keeps refusing a write as a conflict: {error.cause}"
        raise ConflictError(words, status=409, reason="Conflict") from error


def _same(found: Record, written: Record) -> bool:
    return encode_record(found) == encode_record(written)


def _check_ours(existing: dict[str, Any], manifest: dict[str, Any]) -> None:
    labels = existing["metadata"].get("labels") or {}
    if labels.get(RUN) != manifest["metadata"]["labels"][RUN]:
        raise _not_ours({**existing, "kind": manifest["kind"]})


def _has_content(existing: dict[str, Any], manifest: dict[str, Any]) -> bool:
    return all(existing.get(key) == manifest.get(key) for key in ("data", "type", "immutable"))


def _unrecorded(action: AdoptPod, words: str) -> OwnershipError:
    return OwnershipError(
        f"pod {action.pod} has this job's name, is in no record of it, and {words}",
        hint="remove it, or wait for its end and remove it then; the job runs afterwards",
    )


def _not_ours(existing: dict[str, Any]) -> AdmissionRefusedError:
    ref = ref_of({"kind": "Pod", **existing})
    return AdmissionRefusedError(
        "an object of this name exists and was not made by this job",
        where=str(ref),
        hint="rename the job, or remove the object",
        status=409,
        reason="AlreadyExists",
    )
