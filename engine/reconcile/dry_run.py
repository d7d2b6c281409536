"""What a reconcile would do, without doing it: `decide` is asked, and its writes are only noted.

A write that is noted is taken for done, so that `decide` says what comes after it: the record of a
run that would be replaced counts as closed, its pod as gone. The first pod that would be created
ends the tale, for nobody knows what becomes of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from engine.api.model import Config, Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.records import RecordList
from engine.cluster.server import check_server_version
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
from engine.prune.removed import find_gone
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.executor import ActionExecutor
from engine.reconcile.image_locator import ImageLocator
from engine.reconcile.job_state import JobState
from engine.reconcile.preflight import preflight
from engine.reconcile.reconciler import Reconciler
from engine.reconcile.rendering import RenderConfig, render_attempt
from engine.reconcile.reporter import AttemptReporter
from engine.reconcile.start_brake import new_run, start_limit
from engine.reconcile.watch_errors import WatchErrorReporter
from engine.refs import Ref, ref_of
from engine.render.manifests import Manifests
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.runtime.supervisor import Supervisor
from engine.telemetry.events import Notice

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


@dataclass(frozen=True, slots=True)
class DryRunOptions:
    """What would be reconciled, and how far the server is asked."""

    source: str
    server_side: bool
    """Whether what would be created is sent as a dry run."""
    concurrency: int = 16
    max_starts: int | None = None
    prune_in: tuple[str, ...] | None = None
    """Both as in `OnceOptions`."""


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
        self,
        client: Client,
        jobs: Sequence[Job],
        config: Config,
        options: DryRunOptions,
        templates: Templates,
        dependencies: ControllerDependencies,
    ) -> None:
        self._client = client
        self._jobs = {job.key: job for job in jobs}
        self._namespaces = sorted({key.namespace for key in self._jobs})
        self._options = options
        self._dependencies = dependencies
        self._render_config = RenderConfig(templates, options.source, config.limits)
        emit = dependencies.emit
        self._on_error = WatchErrorReporter(emit)
        context = WatchContext(client, Supervisor(emit), lambda _: None, self._on_error)
        self._informers = InformerFactory(context, options.source)
        reporter = AttemptReporter(client, emit, on_pods=False)
        self._executor = ActionExecutor(
            client,
            self._informers,
            self._render_config,
            ImageLocator(client, emit),
            reporter,
            dependencies.redactor,
        )
        self._reconciler = Reconciler(
            client,
            self._informers,
            self._executor,
            reporter,
            source=options.source,
            pull=config.pull,
            kept_runs=config.records.history,
        )
        self.gone: RecordList | None = None
        """Records of the jobs that would be removed; None where none is to be."""

    def run(self) -> tuple[JobPlan, ...]:
        """A plan for each job.

        Errors: those of `RunOnce.run` before it writes; afterwards every error is a job's own.
        """
        options = self._options
        retry_transient(self._list, self._on_error)
        states = [JobState(job) for job in self._jobs.values()]
        with ThreadPoolExecutor(options.concurrency, "plan") as pool:
            broken = dict(zip(self._jobs, map(self._read_record, states), strict=True))
            self._preflight([state for state in states if broken[state.job.key] is None])
            if options.prune_in is not None:
                living = self._jobs.keys()
                self.gone = find_gone(self._client, options.source, living, options.prune_in)
            return tuple(pool.map(self._plan, states, broken.values()))

    def pods(self) -> list[Object]:
        """Every pod of the source in the namespaces of its jobs, as it is."""
        return [pod for name in self._namespaces for pod in self._informers.pods(name).all_items()]

    def records(self) -> list[Record]:
        """Every record of the namespaces of its jobs, of whichever source."""
        informers = self._informers
        return [r for name in self._namespaces for r in informers.records(name).all_records()]

    def _list(self) -> None:
        check_server_version(self._client)
        self._informers.list_all(self._namespaces)

    def _read_record(self, state: JobState) -> EngineError | None:
        try:
            state.record = self._informers.records(state.job.namespace).newest(state.job.key, None)
        except EngineError as error:
            return error
        return None

    def _preflight(self, states: Sequence[JobState]) -> None:
        source, dependencies = self._options.source, self._dependencies
        unfinished = [state for state in states if not state.is_finished(source)]
        started = {s.job.key for s in unfinished if s.is_started(self._pods_of(s.job))}
        environment, redactor = dependencies.environment, dependencies.redactor
        preflight(self._client, unfinished, started, self._render_config, environment, redactor)
        self._warn_of_many_starts(unfinished)

    def _warn_of_many_starts(self, unfinished: Sequence[JobState]) -> None:
        """A reconcile would start nothing; what it would have started is told all the same."""
        begun = {s.job.key: new_run(s.job, s.record, self._pods_of(s.job)) for s in unfinished}
        limit = start_limit(self._options.max_starts, self._render_config.limits)
        try:
            limit.require({key: why for key, why in begun.items() if why is not None})
        except UsageError as error:
            self._dependencies.emit(Notice(str(error)))

    def _pods_of(self, job: Job) -> tuple[Object, ...]:
        return self._informers.pods(job.namespace).items(job.key)

    def _plan(self, state: JobState, broken: EngineError | None) -> JobPlan:
        job = state.job
        tale = _Tale(state.record, {uid_of(pod): pod for pod in self._pods_of(job)})
        try:
            if broken is not None:
                raise broken
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
            for pod in self._pods_of(job)
            if is_terminating(pod) or (has_ended(pod) and not is_finished(pod))
        ]
        for uid in ending:
            state.observed.deleted_uids.add(uid)
            self._informers.pods(job.namespace).mark_deleted(job.key, uid)
        return bool(ending)

    def _pretend(self, state: JobState, action: Action) -> bool:
        """Take a write for done; whether it can be told what comes next."""
        observed = state.observed
        match action:
            case WriteRecord(record) | MarkBack(record):
                state.record = record
            case DeletePod(_, uid):
                observed.deleted_uids.add(uid)
                self._informers.pods(state.job.namespace).mark_deleted(state.job.key, uid)
            case AdoptPod() if self._options.server_side:
                self._executor.adopt_pod(state, action)
            case AdoptPod(_, _, uid):
                observed.adopted.add(uid)
            case CreateDependents(_, _, uid):
                observed.dependents_ready.add(uid)
            case RestoreLabels(_, uid):
                observed.labels_restored_at[uid] = self._client.now()
            case _:
                return False
        return True

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
        if self._options.server_side:
            try:
                admitted = self._ask(sent)
            except QuotaExceededError as error:
                reason = f"{reason}; would be queued: {error.cause}"
        objects = tuple(self._compare(sent, admitted, tale))
        return JobPlan(job, action, reason, fields, words, objects)

    def _ask(self, sent: Manifests) -> dict[str, Object]:
        """What the API would make of each object, by its kind; a namesake's Secret isn't asked for.

        Errors: those of the API: the job would be refused.
        """
        admitted = {"Pod": api.create(self._client, sent.pod, dry_run=True)}
        for manifest in sent.dependents:
            try:
                admitted[manifest["kind"]] = api.create(self._client, manifest, dry_run=True)
            except AlreadyExistsError:
                continue
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
