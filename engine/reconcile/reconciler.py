"""Level-triggered reconcile of one job: observe, decide, act, until there is nothing to do now.

Every decision is `engine.lifecycle`'s. Each step is one that the engine may die after. Errors of
the API go up unless they are themselves an answer. An object that exists is looked at, a rejection
is remembered, and after a lost race the engine reads again.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.api.model import Job, PullSettings, RecordSettings
from engine.api.versions import API_VERSION
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.events import find_pull_cause
from engine.cluster.records import CONFIG_MAP_RECORDS, STATUS_RECORDS
from engine.errors import (
    AdmissionRefusedError,
    AlreadyExistsError,
    ApiError,
    ClaimedError,
    ConflictError,
    EngineError,
    ForbiddenError,
    NotFoundError,
    OwnershipError,
    QuotaExceededError,
    UnauthorizedError,
)
from engine.informers.factory import InformerFactory
from engine.lifecycle.actions import (
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    FindPullCause,
    RefreshPod,
    RemoveSchedulingGate,
    ReportError,
    Step,
    UpdatePod,
    Wait,
    WriteRecord,
)
from engine.lifecycle.attempt import RenderConfig, render_attempt
from engine.lifecycle.ownership import LeftBehind, NeverRan, Proof, Recorded
from engine.lifecycle.record import MaskedRecord, Record, mask_record
from engine.lifecycle.record_codec import encode_record
from engine.lifecycle.rules import decide
from engine.lifecycle.rules.resolve_unrecorded import removal_hint
from engine.lifecycle.state import (
    LifecycleState,
    Rejection,
    foreign_label,
    gate_position,
    uid_of,
)
from engine.reconcile.job_store import TrackedJob
from engine.reconcile.pull_scout import PullScout, pull_keys
from engine.reconcile.reporter import AttemptReporter
from engine.refs import GATE, MAIN_CONTAINER, JobKey, Ref, ref_of
from engine.render.manifests import Manifests, secret_references
from engine.runtime.retry import backoff
from engine.status.waiting import classify_pull, has_pull_cause, pull_errors
from engine.telemetry.events import ErrorReported, Notice
from engine.telemetry.redact import Redactor
from engine.transform.context import with_field
from engine.transform.prefer_nodes import prefer_nodes
from engine.transform.set_owner_reference import set_owner_reference
from engine.wellknown import (
    DISRUPTION,
    EXPIRES_AT,
    FENCE,
    LAST_APPLIED,
    NOT_EVICTED,
    SCHEDULING,
    TTL_FROM,
)

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
_MOST_CONFLICTS = 5
_NO_KINDS = timedelta(seconds=60)
_MOST_STEPS = 100
_REFUSALS = (QuotaExceededError, AdmissionRefusedError, ForbiddenError)


class Result(Struct, frozen=True):
    """What a reconcile came to."""

    finished: bool = False
    """The run is over, and nothing is left to do."""
    started: bool = False
    """The pod of an attempt may run."""
    requeue_at: datetime | None = None
    """When to reconcile without an event; None for not before one."""


class Reconciler(Struct, frozen=True):
    """Reconciles jobs of one source; `EXECUTORS` says which method each kind of action has.

    Guarantees: at most one write between two decisions; never two reconciles of one job at once,
    if its caller (the work queue) sees to that.
    """

    client: Client
    informers: InformerFactory
    config: RenderConfig
    hosts_with: Callable[[str], Sequence[str]]
    """The nodes that have an image."""
    reporter: AttemptReporter
    redactor: Redactor
    pull: PullSettings
    kept_runs: int = RecordSettings().history
    owns: Callable[[JobKey], bool] = lambda _key: True
    """Whether a job is this engine's: while it was paused, another one may have taken over."""
    engine: str = ""
    """This process, as records name it."""
    no_objects: dict[str, datetime] = {}
    """Until when JobSpec objects aren't asked for in a namespace: there can be none, or may not."""
    has_objects: set[str] = set()
    """Namespaces that can have JobSpec objects: the kind was there."""
    on_created: Callable[[JobKey], None] = lambda _key: None
    """Gets the job whose pod is there: the next one in a quota's line may ask."""
    scout: PullScout | None = None
    """What is known of images; None where each job finds out by itself."""

    def reconcile(self, tracked: TrackedJob) -> Result:
        """Do what can be done now.

        Errors: OwnershipError for a job of another source, or a pod in its way; those of the API
        that trying again may mend and those that it can't. What has been written stays valid
        either way.
        """
        tracked.unrecorded, tracked.conflicts = None, 0
        for _ in range(_MOST_STEPS):
            if not self.owns(tracked.job.key):
                return Result(requeue_at=self.client.now())
            state = self._observe(tracked)
            match action := decide(state):
                case Done():
                    self.reporter.report_end(tracked)
                    return Result(finished=True, started=True)
                case ReportError(message, hint, kind):
                    status: dict[str, Any] = {"status": 403, "reason": "Forbidden"}
                    raise kind(message, hint=hint, **status if issubclass(kind, ApiError) else {})
                case Wait(until, unrecorded):
                    tracked.unrecorded = unrecorded
                    self.reporter.report_waiting(tracked, state)
                    started = state.run_record.open_attempt is not None
                    if started and state.rejected_record() is None:
                        tracked.observed.rejection = None
                    return Result(started=started, requeue_at=until)
                case _:
                    self.execute(tracked, action)
        raise EngineError(
            f"job {tracked.job.key} does not settle", hint="this is a defect: report it"
        )

    def _observe(self, tracked: TrackedJob) -> LifecycleState:
        """What is known now."""
        job, known, now = tracked.job, tracked.observed, self.client.now()
        observe = self.informers.pods(job.namespace).observe
        known.pods, known.deletions, known.deleted_outcomes = observe(job.key)
        for pod in known.pods:
            for trouble in pull_errors(pod):
                place = (uid_of(pod), trouble.name)
                if has_pull_cause(trouble):
                    # The first words of a class: the later ones often say less.
                    before, words = known.pull_causes.get(place), trouble.message
                    if before is None or classify_pull(before) is not classify_pull(words):
                        known.pull_causes[place] = words
        has_references = bool(job.secret_keys) and not tracked.knows_references
        known.masks_secrets = tracked.rendered.secrets_resolved and not has_references
        known.superseded = tracked.check_superseded(now)
        source, record, kept_runs = self.config.source, tracked.record, self.kept_runs
        state = LifecycleState(job, record, known, now, source, self.pull, kept_runs, self.engine)
        run, known.image_holds = state.run_record, ()
        if self.scout is not None:
            self.scout.observe(job.key, state)
            if run.open_attempt is None and not run.state.is_final:
                keys = pull_keys(job, run.next_policies(job), tracked.rendered.secrets)
                known.image_holds = self.scout.holds(job.key, run.next_number, keys, now)
        return state

    def execute(self, tracked: TrackedJob, action: Step) -> None:
        """Take the one step that `action` is. Errors: the API's; what was written stays valid."""
        writes = tracked.writes
        try:
            EXECUTORS[type(action)](self, tracked, action)
        except ForbiddenError:
            tracked.writes = writes  # what the server forbids has changed nothing
            raise

    def create_pod(self, tracked: TrackedJob, action: CreatePod) -> None:
        """Step 1. A pod that has the name already is for `lifecycle` to judge."""
        job, now = tracked.job, self.client.now()
        if self.scout is not None:
            keys = pull_keys(job, action.policies, tracked.rendered.secrets)
            if not self.scout.claim(job, action.attempt, keys, now):
                return
        begun = tracked.record is not None and (tracked.record.attempts or not job.object)
        if not begun:
            self._refuse_claimed(job)
        manifests = self._manifests(tracked, action.attempt, action.policies)
        fence = str(action.fence)
        manifest = with_field(manifests.pod, "metadata", "annotations", FENCE, value=fence)
        if action.images:
            manifest = prefer_nodes(manifest, map(self.hosts_with, action.images))
        tracked.writes += 1
        tracked.observed.create_unanswered = True
        try:
            pod = api.create(self.client, manifest)
        except AlreadyExistsError as error:
            existing = api.get(self.client, ref_of(manifests.pod))
            _count_conflict(tracked, error)
            if existing is not None:
                self._refresh_namesake(tracked, existing)
        except (QuotaExceededError, AdmissionRefusedError) as error:
            self._store_rejection(tracked, error, "")
        except EngineError as error:
            tracked.observed.create_unanswered = error.retryable
            raise
        else:
            tracked.observed.rejection = None
            version = tracked.record.version if tracked.record is not None else ""
            tracked.observed.created[pod["metadata"]["uid"]] = version
            self.informers.pods(job.namespace).upsert(pod)
            self.on_created(job.key)
        tracked.observed.create_unanswered = False

    def _refresh_namesake(self, tracked: TrackedJob, pod: dict[str, Any]) -> None:
        """A pod with the labels of another is cached only if it is in the record.

        No watch follows it, and the TTL rule would take a cached pod for one of the source.

        Errors: OwnershipError for any other.
        """
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        foreign = foreign_label(pod, self.config.source)
        if foreign and uid not in tracked.observed.created:
            tracked.record = self._read_record(tracked.job.key)
            if tracked.record is None or uid not in tracked.record.pods:
                raise OwnershipError(foreign, hint=removal_hint(pod))
        tracked.observed.rejection = None
        self.refresh(tracked, RefreshPod(name, uid))

    def create_dependents(self, tracked: TrackedJob, action: CreateDependents) -> None:
        """Step 2. What is there already must be this pod's; leftovers of a namesake go first.

        Others' Secrets that the pod refers to are looked up now: a node would only find out once it
        has the images, and of a login never tell.
        """
        manifests = self._manifests(tracked, action.attempt, action.policies)
        if action.reported is not None:
            self._restore_dependents(tracked, action, manifests)
            return
        for manifest in manifests.dependents:
            owned = set_owner_reference(manifest, pod=action.pod, uid=action.uid)
            tracked.writes += 1
            try:
                if not self._create_owned(tracked, owned, action):
                    return
            except (*_REFUSALS, UnauthorizedError) as error:
                self._store_rejection(tracked, error, action.uid)
                return
        missing, values = read_references(self.client, tracked.job)
        if missing:
            tracked.observed.secrets_missing[action.uid] = missing
        tracked.knows_references = values is not None
        if values:
            known = self.redactor.of(tracked.job.key).values
            self.redactor.add((*known, *values), tracked.job.key)
        tracked.observed.rejection = None
        tracked.observed.dependents_ready |= {action.uid}

    def _restore_dependents(
        self, tracked: TrackedJob, action: CreateDependents, manifests: Manifests
    ) -> None:
        """What is missing is made again.

        A rejection changes nothing: the pod goes on to say what it lacks, and its attempt ends so.
        """
        for manifest in manifests.dependents if tracked.rendered.secrets_resolved else ():
            with suppress(AlreadyExistsError, *_REFUSALS):
                # Only names are read, never a secret's value.
                if api.get_metadata(self.client, ref_of(manifest)) is not None:
                    continue
                tracked.writes += 1
                owned = set_owner_reference(manifest, pod=action.pod, uid=action.uid)
                api.create(self.client, owned)
                words = f"{ref_of(manifest)} was deleted before its pod had started; created again"
                self.reporter.emit(Notice(words, tracked.job.key, warning=True))
        tracked.observed.dependents_looked_up[action.uid, bool(action.reported)] = self.client.now()

    def write_record(self, tracked: TrackedJob, action: WriteRecord) -> None:
        """Step 3 and 5. Another writer's record counts if it was first; its end, such as that of
        `engine cancel`, is reported as the end.

        A write of our own whose reply was lost meets itself, which is no conflict, and no rejection
        either: a quota is asked before it is found that the record is there.
        """
        before, job, wanted = tracked.record, tracked.job, action.record
        if job.object is not None:
            informer = self.informers.records(job.namespace)
            seen = replace(job.object, suspend=job.suspend, outdated=not wanted.is_of(job))
            version = wanted.version or informer.version_of(job.key)
            wanted = replace(wanted, object=seen, version=version)
            if before is None and (found := informer.newest(job.key, None)) is not None:
                # The version is of an object that had no record when this was decided.
                tracked.record = found
                words = "another engine wrote this job's record first"
                raise ConflictError(words, status=409, reason="Conflict")
        masked = mask_record(wanted, self.redactor.of(job.key))
        record = masked.record
        if before is None:
            announces = not record.attempts
        else:
            announces = bool(job.object and not (before.open_attempt or before.is_of(job)))
        if announces:
            self._refuse_claimed(job)
        version = before.version if before is not None else ""
        if before is None or before.annotations == record.annotations:
            # An annotation is about the record: nothing of the job has changed.
            tracked.writes += 1
        try:
            written = self._write(masked)
        except (ConflictError, AlreadyExistsError, *_REFUSALS) as error:
            found = self._read_record(record.key)
            is_unchanged = found is None or found.version == version
            is_refused = isinstance(error, _REFUSALS) and is_unchanged
            if is_refused and before is not None and before.annotations != record.annotations:
                self._give_up(tracked, version, "the mark of its record can't be removed", error)
                return
            if is_refused:
                tracked.record = found
                version = found.version if found is not None else ""
                self._store_rejection(tracked, error, record_version=version)
                return
            if found is None or encode_record(found) != encode_record(record):
                tracked.record = found
                _count_conflict(tracked, error)
                is_same = found and before and encode_record(found) == encode_record(before)
                if not (is_unchanged or is_same) and found and not found.state.is_final:
                    words = "another engine wrote this job's record first"
                    self.reporter.emit(ErrorReported(tracked.job.key, words, retrying=True))
                return
            written = found
        tracked.record = written
        rejection = tracked.observed.rejection
        if rejection is not None and rejection.record_version is not None:
            tracked.observed.rejection = None
        self.reporter.report_record(tracked, before, written)

    def remove_scheduling_gate(self, tracked: TrackedJob, action: RemoveSchedulingGate) -> None:
        """Step 4. Only this very pod, only this very gate, whatever its index by now.

        A pod that others go on holding is marked with the same patch: its TTL has yet to begin.
        Errors: ClaimedError for a job that a file and an object began at once.
        """
        if tracked.record is not None and len(tracked.record.pods) == 1:
            self._withdraw_if_claimed(tracked, tracked.record)
        path = "/spec/schedulingGates"
        ours = f"{path}/{action.gate_index}"
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": action.uid},
            {"op": "test", "path": f"{ours}/name", "value": GATE},
        ]
        if action.gate_count > 1:
            mark = f"/metadata/annotations/{TTL_FROM.replace('/', '~1')}"
            operations.append({"op": "add", "path": mark, "value": SCHEDULING})
        operations.append({"op": "remove", "path": path if action.gate_count == 1 else ours})
        refused = self._patch_pod(tracked, action, operations)
        if refused is None:
            tracked.observed.rejections = 0
            return
        pod, error = refused
        if gate_position(pod) == (action.gate_index, action.gate_count):
            self._store_rejection(tracked, error, action.uid)

    def delete_pod(self, tracked: TrackedJob, action: DeletePod) -> None:
        """Step 5. A pod that is no longer the one that was decided on is spared."""
        tracked.writes += 1
        metadata = {"namespace": tracked.job.namespace, "name": action.pod, "uid": action.uid}
        metadata |= {"resourceVersion": action.version}
        pods = (pod for pod in tracked.observed.pods if uid_of(pod) == action.uid)
        proof: Proof = NeverRan(next(pods, {"metadata": metadata}))
        if tracked.record is not None and action.uid in tracked.record.pods:
            proof = Recorded(tracked.record)
        is_same = True
        try:
            api.delete(self.client, api.PODS, metadata, proof, grace=action.grace)
        except ConflictError as error:
            _count_conflict(tracked, error)
            is_same = False
        self._get_pod(tracked, action.pod, action.uid)
        if is_same:
            words = f"pod {action.pod} deleted: {action.why}"
            self.reporter.emit(Notice(words, tracked.job.key, detail=True))

    def refresh(self, tracked: TrackedJob, action: RefreshPod) -> None:
        """Pod and record as they are now; what was known of them may have been old."""
        pod = self._get_pod(tracked, action.pod, action.uid)
        tracked.record = self._read_record(tracked.job.key)
        if pod is not None and gate_position(pod) is None:
            tracked.observed.read_ungated.add(action.uid)
        tracked.observed.refreshed_at[action.uid] = self.client.now()

    def find_cause(self, tracked: TrackedJob, action: FindPullCause) -> None:
        """Without the right to list nodes none has the image."""
        known, place = tracked.observed, (action.uid, action.container)
        if place not in known.pull_causes:
            ref = Ref("Pod", tracked.job.namespace, action.pod)
            words = find_pull_cause(self.client, ref, action.uid, action.image)
            known.pull_causes[place] = words
        is_there = bool(action.node) and action.node in self.hosts_with(action.image)
        known.cached_images[action.uid, action.image] = is_there

    def update_pod(self, tracked: TrackedJob, action: UpdatePod) -> None:
        """The pod comes last: its mark says that the rest was done.

        A pod that is gone or another one needs no update; a rejection leaves it as it is.
        """
        of_pods = {EXPIRES_AT, LAST_APPLIED, DISRUPTION, *NOT_EVICTED}
        annotations = {k: v for k, v in action.annotations.items() if k not in of_pods}
        labels = {k: v for k, v in action.labels.items() if k not in of_pods}
        for kind in ("Secret", "ConfigMap") if labels or annotations else ():
            ref = Ref(kind, tracked.job.namespace, action.pod)
            # Without them the pod is pruned as its spec says, and they go with it.
            with suppress(NotFoundError, ConflictError, AdmissionRefusedError, ForbiddenError):
                found = api.get_metadata(self.client, ref) or {}
                owners = [owner["uid"] for owner in found.get("ownerReferences") or ()]
                if action.uid in owners:
                    own = {"uid": found["uid"], "labels": labels, "annotations": annotations}
                    api.patch(self.client, ref, {"metadata": own})
        changed = {"uid": action.uid, "labels": action.labels, "annotations": action.annotations}
        change: dict[str, Any] = {"metadata": changed}
        if action.deadline is not None:
            change["spec"] = {"activeDeadlineSeconds": action.deadline}
        refused = self._patch_pod(tracked, action, change)
        if refused is not None:
            tracked.writes -= 1
            words = f"pod {action.pod} can't be updated ({', '.join(action.fields)})"
            self._give_up(tracked, action.uid, words, refused[1])
            return
        if LAST_APPLIED in action.annotations:
            tracked.observed.given_up.add(action.once)
        words = f"pod {action.pod} updated in place: {', '.join(action.fields)}"
        self.reporter.emit(Notice(words, tracked.job.key, detail=action.fields == (EXPIRES_AT,)))

    def _give_up(self, tracked: TrackedJob, what: str, words: str, error: ApiError) -> None:
        """What the server refuses of a job's housekeeping changes nothing of the job's outcome.

        It is tried again when the job is looked at anew: after a resync, or in the next run.
        """
        tracked.observed.given_up.add(what)
        self.reporter.emit(Notice(f"{words}: {error}", tracked.job.key, warning=True))

    def _patch_pod(
        self,
        tracked: TrackedJob,
        action: RemoveSchedulingGate | UpdatePod,
        change: list[dict[str, Any]] | dict[str, Any],
    ) -> tuple[dict[str, Any], AdmissionRefusedError | ForbiddenError] | None:
        """Patch this very pod; if that is refused, the pod as it is now, and the refusal."""
        tracked.writes += 1
        ref = Ref("Pod", tracked.job.namespace, action.pod)
        try:
            pod = api.patch(self.client, ref, change)
        except (NotFoundError, ConflictError, AdmissionRefusedError, ForbiddenError) as error:
            found = self._get_pod(tracked, action.pod, action.uid)
            if found is not None and isinstance(error, AdmissionRefusedError | ForbiddenError):
                return found, error
            if found is not None:
                _count_conflict(tracked, error)
            return None
        self.informers.pods(tracked.job.namespace).upsert(pod)
        return None

    def _manifests(
        self, tracked: TrackedJob, attempt: int, policies: Mapping[str, str]
    ) -> Manifests:
        """Rendered once for an attempt with these policies."""
        job, rendered = tracked.job, tracked.rendered
        if rendered.manifests is None or rendered.attempt != (attempt, policies):
            made = render_attempt(self.config, job, attempt, policies, rendered.secrets)
            rendered.attempt, rendered.manifests = (attempt, policies), made
        return rendered.manifests

    def _write(self, masked: MaskedRecord) -> Record:
        """A record that was deleted meanwhile is made again."""
        store, record = self.informers.store, masked.record
        try:
            return store.write(self.client, masked)
        except NotFoundError:
            if not record.version or record.object is not None:
                raise
            return store.write(self.client, MaskedRecord(replace(record, version="")))

    def _read_record(self, key: JobKey) -> Record | None:
        """As the API has it now; what the object that holds it says is news, too."""
        item = api.get(self.client, self.informers.store.ref(key))
        if item is None:
            return None
        self.informers.records(key.namespace).upsert(item)
        return self.informers.store.parse(item)

    def _refuse_claimed(self, job: Job) -> None:
        """Errors: ClaimedError where the job's record is in the other store: it has the name."""
        other, here = (CONFIG_MAP_RECORDS, "files") if job.object else (STATUS_RECORDS, "objects")
        found, now = None, self.client.now()
        try:
            if now >= self.no_objects.get(job.namespace, now):
                if not (job.object or job.namespace in self.has_objects):
                    self.client.request("GET", f"/apis/{API_VERSION}")
                    self.has_objects.add(job.namespace)
                found = other.read(self.client, job.key)
        except (NotFoundError, ForbiddenError):
            self.no_objects[job.namespace] = now + _NO_KINDS
        if found is not None:
            words = f"job {job.key} belongs to source {found.source!r} of {here}"
            raise ClaimedError(words, hint="engine migrate moves a job; or rename it")

    def _withdraw_if_claimed(self, tracked: TrackedJob, record: Record) -> None:
        """Ask the other store again, after the record was written and before the pod may run.

        A file and an object that begin at once both do. So at least one of them finds the other.
        Errors: ClaimedError, once the record and the pod were taken back.
        """
        try:
            self._refuse_claimed(tracked.job)
        except ClaimedError:
            informer = self.informers.records(record.key.namespace)
            left, tracked.record = self.informers.store.withdraw(self.client, record), None
            if left is None:
                informer.delete(record)
            else:
                informer.upsert(left)
            for uid, name in record.pods.items():
                if (pod := self._get_pod(tracked, name, uid)) is not None:
                    api.delete(self.client, api.PODS, pod["metadata"], NeverRan(pod), grace=0)
                    self._get_pod(tracked, name, uid)
            raise

    def _create_owned(
        self, tracked: TrackedJob, manifest: dict[str, Any], action: CreateDependents
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
            resource, metadata = api.OWN[manifest["kind"]], existing["metadata"]
            proof = LeftBehind(action.pod)
            if not proof.covers(resource.kind, metadata):
                words = "an object of this name exists and was not made by this job"
                where, hint = str(ref_of(manifest)), "rename the job, or remove the object"
                reason = "AlreadyExists"
                raise AdmissionRefusedError(
                    words, where=where, hint=hint, status=409, reason=reason
                )
            owners = [o["uid"] for o in metadata["ownerReferences"]]
            if action.uid in owners and _has_content(existing, manifest):
                return True
            if self._get_pod(tracked, action.pod, action.uid) is None:
                return False
            api.delete(self.client, resource, metadata, proof)
        api.create(self.client, manifest)
        return True

    def _get_pod(self, tracked: TrackedJob, name: str, uid: str) -> dict[str, Any] | None:
        """The very pod, as the API has it now; None when it is gone."""
        found = self.informers.pods(tracked.job.namespace).get(name, uid)
        if found is None:
            tracked.observed.deleted_uids |= {uid}
        return found

    def _store_rejection(
        self, tracked: TrackedJob, error: ApiError, uid: str = "", record_version: str | None = None
    ) -> None:
        tracked.observed.rejections += 1
        seconds = backoff(tracked.observed.rejections, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
        kind = type(error) if isinstance(error, _REFUSALS) else ForbiddenError
        words = self.redactor.of(tracked.job.key)(error.cause)
        due = self.client.now() + timedelta(seconds=seconds)
        quota = error.quota if isinstance(error, QuotaExceededError) else ""
        tracked.observed.rejection = Rejection(
            kind, words, due, uid, error.hint, record_version, quota
        )


EXECUTORS: Mapping[type[Step], Callable[[Reconciler, TrackedJob, Any], None]] = {
    CreatePod: Reconciler.create_pod,
    CreateDependents: Reconciler.create_dependents,
    WriteRecord: Reconciler.write_record,
    RemoveSchedulingGate: Reconciler.remove_scheduling_gate,
    DeletePod: Reconciler.delete_pod,
    RefreshPod: Reconciler.refresh,
    FindPullCause: Reconciler.find_cause,
    UpdatePod: Reconciler.update_pod,
}
"""Every step that `lifecycle` can ask for."""


def _count_conflict(tracked: TrackedJob, error: EngineError) -> None:
    """Errors: ConflictError for one more in a reconcile than a race can explain."""
    tracked.conflicts += 1
    if tracked.conflicts > _MOST_CONFLICTS:
        words = f"the server keeps refusing a write as a conflict: {error.cause}"
        raise ConflictError(words, status=409, reason="Conflict") from error


def _has_content(existing: dict[str, Any], manifest: dict[str, Any]) -> bool:
    return all(existing.get(key) == manifest.get(key) for key in ("data", "type", "immutable"))


def read_references(client: Client, job: Job) -> tuple[str, tuple[str, ...] | None]:
    """The first Secret, or key, that isn't there, in the kubelet's words, "" if all are; and the
    values of the job's variables, None where one may not be read.

    One that may not be read is left to the kubelet. Errors: others of the API.
    """
    data: dict[str, dict[str, str] | None] = {}
    values: list[str] = []
    is_known = True
    for holder, name, wanted in secret_references(job):
        try:
            if name not in data:
                found = api.get(client, Ref("Secret", job.namespace, name))
                data[name] = None if found is None else found.get("data") or {}
        except ForbiddenError:
            is_known = is_known and holder != MAIN_CONTAINER
            continue
        there = data[name]
        if there is None:
            return f'{holder}: secret "{name}" not found', None
        if there.keys().isdisjoint(wanted):
            where = f"{job.namespace}/{name}"
            return f"{holder}: couldn't find key {wanted[0]} in Secret {where}", None
        if holder == MAIN_CONTAINER:
            values.append(b64decode(there[wanted[0]]).decode(errors="replace"))
    return "", tuple(values) if is_known else None
