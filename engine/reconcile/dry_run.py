"""What a reconcile would do, without doing it: `decide` is asked, and its writes are only noted.

A write that is noted is taken for done, so that `decide` says what comes after it: the record of a
run that would be replaced counts as closed, its pod as gone. The first pod that would be created
ends the tale, for nobody knows what becomes of it.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.api.model import Job
from engine.cluster import api
from engine.cluster.api import version_number
from engine.cluster.records import check_record
from engine.decide.actions import (
    Action,
    AdoptPod,
    ConfirmDeleted,
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    FindPullCause,
    MarkBack,
    RefreshPod,
    RejectForeign,
    ReportRejection,
    RestoreDependents,
    RestoreLabels,
    StampExpiry,
    Wait,
    WriteRecord,
)
from engine.decide.explain import (
    describe_step,
    explain_rest,
    explain_start,
    fields_changed,
    replaces,
)
from engine.decide.live_manifest import diff_sides, masked
from engine.decide.record import Record
from engine.decide.situation import has_ended, is_finished, is_terminating, uid_of
from engine.errors import (
    AlreadyExistsError,
    EngineError,
    ForbiddenError,
    OwnershipError,
    QuotaExceededError,
    UsageError,
)
from engine.informers.factory import InformerFactory
from engine.informers.reflector import WatchContext
from engine.prune.options import DryRun
from engine.prune.result import PruneReport
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.executor import ActionExecutor
from engine.reconcile.image_locator import ImageLocator
from engine.reconcile.job_state import JobState
from engine.reconcile.once_jobs import OnceJobs, OnceRequest
from engine.reconcile.reconciler import Reconciler
from engine.reconcile.rendering import RenderConfig, render_attempt
from engine.reconcile.reporter import AttemptReporter
from engine.reconcile.watch_errors import WatchErrorReporter
from engine.refs import Ref, ref_of
from engine.render.manifests import Manifests
from engine.runtime.supervisor import Supervisor
from engine.status.outcome import State
from engine.transform.manifest_edit import with_field
from engine.wellknown import EXPIRES_AT

_MOST_STEPS = 100
Object = dict[str, Any]


class PlannedAction(StrEnum):
    """What would become of a job."""

    START = "start"
    """A pod would be created, and nothing of the job runs."""
    REPLACE = "replace"
    """What is under way of it would be ended first."""
    CONTINUE = "continue"
    """Something would be written about a run that has begun."""
    LEAVE = "leave"
    """Nothing would be written."""
    FAIL = "fail"
    """It would be refused."""


@dataclass(frozen=True, slots=True)
class ObjectDiff:
    """One object that would be created, beside the one of the attempt before."""

    name: Ref
    """What would be created."""
    manifest: Object
    """As it can be compared; a Secret's values are masked."""
    before_name: Ref | None = None
    """What it is compared with."""
    before: Object | None = None
    """As it can be compared; None where there is nothing."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What a reconcile would do about one job, and why."""

    job: Job
    action: PlannedAction
    reason: str
    fields: tuple[str, ...] = ()
    """In which the spec differs from the one that ran last, as far as the record tells."""
    steps: tuple[str, ...] = ()
    """The writes, in words, up to the first pod that would be created."""
    objects: tuple[ObjectDiff, ...] = ()
    error: EngineError | None = None


@dataclass(slots=True)
class _Tale:
    """How a job would go on."""

    before: Record | None
    pods: Mapping[str, Object]
    """By UID, as they are."""
    steps: list[Action] = field(default_factory=list)
    end: Action = field(default_factory=Done)


class DryRunOnce:
    """Guarantees: sends nothing that changes anything; every decision is `decide`'s."""

    def __init__(
        self, request: OnceRequest, dependencies: ControllerDependencies, *, server_side: bool
    ) -> None:
        client, config, emit = request.client, request.config, dependencies.emit
        source = request.options.source
        self._client = client
        self._concurrency = request.options.concurrency
        self._server_side = server_side
        """Whether what would be created is sent as a dry run."""
        self._render_config = RenderConfig(request.templates, source, config.limits)
        on_error = WatchErrorReporter(emit)
        context = WatchContext(client, Supervisor(emit), lambda _: None, on_error)
        self._informers = InformerFactory(context, source)
        self._executor = ActionExecutor(
            client,
            self._informers,
            self._render_config,
            ImageLocator(client, emit),
            AttemptReporter(client, emit, on_pods=False),
            dependencies.redactor,
        )
        self._reconciler = Reconciler(self._executor, config.pull, config.records.history)
        self._jobs = OnceJobs(request, dependencies, self._informers, self._render_config, on_error)
        self._stamped: dict[str, Object] = {}
        """Finished pods with the time that would be written on them, by UID."""
        self.refusal: UsageError | None = None
        """Why a reconcile would start nothing; what it would have started is told all the same."""

    def run(self) -> tuple[JobPlan, ...]:
        """A plan for each job.

        Errors: those of `RunOnce.run` before it writes; afterwards every error is a job's own.
        """
        self._jobs.list()
        jobs = self._jobs.by_key
        states = [JobState(job) for job in jobs.values()]
        with ThreadPoolExecutor(self._concurrency, "plan") as pool:
            broken = dict(zip(jobs, map(self._read_record, states), strict=True))
            unfinished = self._jobs.preflight(s for s in states if broken[s.job.key] is None)
            try:
                self._jobs.require_few_starts(unfinished)
            except UsageError as error:
                self.refusal = error
            self._jobs.find_gone()
            return tuple(pool.map(self._plan, states, broken.values()))

    def prune(self, mode: DryRun) -> PruneReport:
        """What would be pruned then: pods as they would be, in the version that they have."""
        return self._jobs.prune(dry_run=mode, changed=self._stamped)

    def _read_record(self, state: JobState) -> EngineError | None:
        try:
            state.record = self._informers.records(state.job.namespace).newest(state.job.key, None)
        except EngineError as error:
            return error
        return None

    def _plan(self, state: JobState, broken: EngineError | None) -> JobPlan:
        job = state.job
        tale = _Tale(state.record, {uid_of(pod): pod for pod in self._jobs.pods_of(job.key)})
        try:
            if broken is not None:
                raise broken
            if not state.is_finished(self._render_config.source) or state.needs_cleanup(
                tale.pods.values()
            ):
                self._play(state, tale)
            return self._told(state, tale)
        except EngineError as error:
            return JobPlan(job, PlannedAction.FAIL, str(error), error=error)

    def _play(self, state: JobState, tale: _Tale) -> None:
        """Errors: OwnershipError for what isn't this source's; those of reads."""
        for _ in range(_MOST_STEPS):
            _, action = self._reconciler.next_action(state)
            tale.end = action
            match action:
                case Wait() if self._pretend_ended(state):
                    continue
                case Done() | Wait():
                    return
                case RejectForeign(message, hint):
                    raise OwnershipError(message, hint=hint)
                case ReportRejection(rejection):
                    raise EngineError(rejection.message, hint=rejection.hint)
                case RefreshPod(_, uid) if tale.steps:
                    state.observed.refreshed_at[uid] = self._client.now()
                case RestoreDependents(_, _, uid, _, reported):
                    if any(self._executor.missing_dependents(state, action)):
                        tale.steps.append(action)
                    state.observed.dependents_looked_up[uid, reported] = self._client.now()
                case RefreshPod() | ConfirmDeleted() | FindPullCause():
                    self._executor.execute(state, action)
                case _:
                    tale.steps.append(action)
                    if not self._pretend(state, action):
                        return

    def _pretend_ended(self, state: JobState) -> bool:
        """Take pods that are about to end for gone, where a new attempt waits for them; whether
        there are any.
        """
        job, record = state.job, state.record
        if record is None:
            return False
        is_current = record.spec_hash == job.spec_hash
        if is_current and (record.state.is_final or record.open_attempt is not None):
            return False
        ending = [
            uid_of(pod)
            for pod in self._jobs.pods_of(job.key)
            if is_terminating(pod) or (has_ended(pod) and not is_finished(pod))
        ]
        for uid in ending:
            state.observed.deleted_uids |= {uid}
            self._informers.pods(job.namespace).mark_deleted(job.key, uid)
        return bool(ending)

    def _pretend(self, state: JobState, action: Action) -> bool:
        """Take a write for done; whether it can be told what comes next."""
        observed = state.observed
        match action:
            case WriteRecord(record) | MarkBack(record):
                state.record = record
            case DeletePod(_, uid):
                observed.deleted_uids |= {uid}
                self._informers.pods(state.job.namespace).mark_deleted(state.job.key, uid)
            case AdoptPod() if self._server_side:
                self._executor.adopt_pod(state, action)
            case AdoptPod(_, _, uid):
                observed.adopted |= {uid}
            case CreateDependents(_, _, uid):
                observed.dependents_ready |= {uid}
            case RestoreLabels(_, uid):
                observed.labels_restored_at[uid] = self._client.now()
            case StampExpiry(_, uid, at):
                self._pretend_stamped(state.job, uid, at)
            case _:
                return False
        return True

    def _pretend_stamped(self, job: Job, uid: str, at: str) -> None:
        """The pod as the patch would have answered; it may expire with its stamp, and be pruned."""
        pod = next(pod for pod in self._jobs.pods_of(job.key) if uid_of(pod) == uid)
        version = version_number(pod["metadata"]["resourceVersion"])
        annotations = {**(pod["metadata"].get("annotations") or {}), EXPIRES_AT: at}
        self._stamped[uid] = with_field(pod, "metadata", "annotations", value=annotations)
        newer = with_field(
            self._stamped[uid], "metadata", "resourceVersion", value=str(version + 1)
        )
        self._informers.pods(job.namespace).upsert(newer)

    def _told(self, state: JobState, tale: _Tale) -> JobPlan:
        job, before, steps = state.job, tale.before, tale.steps
        words = tuple(describe_step(job, step) for step in steps)
        fields = fields_changed(job, before)
        if not isinstance(tale.end, CreatePod):
            if steps:
                return JobPlan(job, PlannedAction.CONTINUE, words[0], fields, words)
            reason = explain_rest(job, before, tale.end)
            return JobPlan(job, PlannedAction.LEAVE, reason, fields)
        action = PlannedAction.REPLACE if replaces(steps) else PlannedAction.START
        attempt, policies, secrets = tale.end.attempt, tale.end.policies, state.rendered.secrets
        sent = render_attempt(self._render_config, job, attempt, policies, secrets)
        reason, admitted = explain_start(job, before), {}
        if self._server_side:
            try:
                admitted = self._ask(sent, tale)
                if before is None:
                    own = Record(job.key, self._render_config.source, job.spec_hash)
                    check_record(self._client, own)
            except QuotaExceededError as error:
                if len(steps) == 1 and _is_queued_so(job, before, error.cause):
                    return JobPlan(job, PlannedAction.LEAVE, reason, fields)
                reason = f"{reason}; would be queued: {error.cause}"
        objects = tuple(self._compare(sent, admitted, tale))
        return JobPlan(job, action, reason, fields, words, objects)

    def _ask(self, sent: Manifests, tale: _Tale) -> dict[str, Object]:
        """What the API would make of each object, by its kind; a namesake's Secret isn't asked for,
        nor a pod in the place of one that would be deleted first.

        Errors: those of the API: the job would be refused.
        """
        admitted = {}
        deleted = {step.pod for step in tale.steps if isinstance(step, DeletePod)}
        for manifest in (sent.pod, *sent.dependents):
            try:
                admitted[manifest["kind"]] = api.create(self._client, manifest, dry_run=True)
            except AlreadyExistsError:
                if manifest is sent.pod and manifest["metadata"]["name"] not in deleted:
                    raise
        return admitted

    def _compare(
        self, sent: Manifests, admitted: Mapping[str, Object], tale: _Tale
    ) -> Iterator[ObjectDiff]:
        pod = self._pod_before(tale)
        for manifest in (sent.pod, *sent.dependents):
            name = ref_of(manifest)
            before = pod if pod is None or name.kind == "Pod" else self._owned_before(name, pod)
            if before is None:
                yield ObjectDiff(name, masked(manifest))
                continue
            live, wanted = diff_sides(before, manifest, admitted.get(name.kind))
            old = Ref(name.kind, name.namespace, before["metadata"]["name"])
            yield ObjectDiff(name, wanted, old, live)

    def _owned_before(self, name: Ref, pod: Object) -> Object | None:
        """The pod's own Secret or ConfigMap; None where it has none, or it may not be read."""
        try:
            return api.get(self._client, Ref(name.kind, name.namespace, pod["metadata"]["name"]))
        except ForbiddenError:
            return None

    def _pod_before(self, tale: _Tale) -> Object | None:
        """The newest pod of the record that is still there."""
        record = tale.before
        if record is None:
            return None
        uids = [attempt.uid for attempt in reversed(record.attempts)]
        uids += [run.uid for run in record.history]
        return next((tale.pods[uid] for uid in uids if uid in tale.pods), None)


def _is_queued_so(job: Job, record: Record | None, cause: str) -> bool:
    """Whether the record of this run says already that it waits for this quota."""
    return (
        record is not None
        and record.spec_hash == job.spec_hash
        and (record.state, record.message) == (State.QUEUED, cause)
    )
