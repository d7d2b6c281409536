"""The next step of a reconcile for each job: `reconcile --dry-run` and `engine diff`.

The rules of the lifecycle decide it, from records and pods as they were listed. A job that would
start, or replace its old run, is shown with the objects of its next attempt. Nothing is written.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from engine import errors
from engine.api.dependencies import Needs, needs_of
from engine.api.model import Config, Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.discovery import check_server_version, missing_namespaces
from engine.cluster.events import find_pull_cause
from engine.cluster.records import CONFIG_MAP_RECORDS, RecordList, RecordStore, record_manifest
from engine.inspect.manifest_diff import comparable, map_values, masked
from engine.lifecycle import actions, change_reason
from engine.lifecycle.attempt import RenderConfig, try_render_attempt
from engine.lifecycle.max_starts import MaxStarts, new_run
from engine.lifecycle.outdated import outdated_fields, with_outdated
from engine.lifecycle.predecessors import JobOrder, waiting_words
from engine.lifecycle.rename import renames
from engine.lifecycle.rules import decide
from engine.lifecycle.state import (
    LifecycleState,
    Observation,
    Rejection,
    gate_position,
    slim_pod,
    uid_of,
)
from engine.prune.result import DryRun, PruneResult
from engine.prune.source import GoneJobs, SourcePruner, SourceState, missed
from engine.refs import JobKey, Ref, parse_pod_name, ref_of
from engine.render.manifests import Manifests
from engine.render.secret_values import no_room, resolve_secrets, texts_to_mask
from engine.runtime.retry import retry_transient
from engine.status.deletion import UNSEEN
from engine.status.outcome import Masked
from engine.status.waiting import has_pull_cause, pull_errors
from engine.telemetry.redact import Redactor
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

_MAX_READS = 100
_STARTS = (change_reason.PlannedAction.START, change_reason.PlannedAction.REPLACE)
Object = dict[str, Any]


class ObjectDiff(Struct, frozen=True):
    """One object that would be created, beside the one of the attempt before."""

    name: Ref
    manifest: Object
    """As it can be compared, masked."""
    before_name: Ref | None = None
    before: Object | None = None
    """The same; None where there is nothing."""


class JobPlan(Struct, frozen=True):
    """The next step for one job, and its cause."""

    job: Job
    action: change_reason.PlannedAction
    reason: str
    fields: tuple[str, ...] = ()
    """In which the spec differs from the one that ran last, as far as the record says."""
    next: str = ""
    """The next write, in words."""
    objects: tuple[ObjectDiff, ...] = ()
    error: errors.EngineError | None = None
    """Unmasked; `reason` has its words."""
    outdated: tuple[str, ...] = ()
    """Fields that ran with other defaults, and would not run again by themselves."""


class Planner(Struct):
    """Plans the jobs of a source.

    Guarantees: sends nothing that changes anything; every decision is `lifecycle`'s.
    """

    client: Client
    jobs: Mapping[JobKey, Job]
    config: Config
    render_config: RenderConfig
    environment: Mapping[str, str]
    redactor: Redactor
    server_side: bool
    """Whether the objects of a next attempt are sent as a dry run."""
    concurrency: int
    records: RecordStore
    refusal: errors.UsageError | None = None
    """Why a reconcile would start nothing; the plan says what it would have started."""
    _records: RecordList = field(default_factory=RecordList)
    _pods: dict[JobKey, list[Object]] = {}
    _needs: Needs = {}

    def plan(self, max_starts: int | None) -> tuple[JobPlan, ...]:
        """A plan for each job, masked.

        Errors: InvalidInputError for what a reconcile checks before it begins; ClusterError where
        the cluster is too old, or can't be read; every other error is a job's own.
        """
        retry_transient(self._list)
        self._needs = needs_of(self.jobs)
        recorded = self._records.items.keys() | self._records.invalid.keys()
        to_create = [job for job in self.jobs.values() if job.key not in recorded]
        problems = retry_transient(partial(missing_namespaces, self.client, to_create))
        with ThreadPoolExecutor(self.concurrency, "plan") as pool:
            plans = tuple(pool.map(self._plan, self.jobs.values()))
        for plan in plans:
            if isinstance(plan.error, errors.InvalidInputError):
                problems += plan.error.problems
        if problems:
            raise errors.InvalidInputError(errors.in_order(problems))
        new_runs = {
            job.key: why
            for job in self.jobs.values()
            if job.key not in self._records.invalid
            and (why := new_run(job, self._records.items.get(job.key), self._pods.get(job.key, ())))
        }
        try:
            MaxStarts.of(max_starts, self.config.limits).check(new_runs)
        except errors.UsageError as error:
            self.refusal = error
        return plans

    def prune(self, mode: DryRun, *, is_whole: bool, gone: GoneJobs | None) -> PruneResult:
        """What would be pruned then. Errors: those of the lists."""
        source, keys = self.render_config.source, self.jobs.keys()
        seen = SourceState(
            is_desired=keys.__contains__,
            is_whole=is_whole,
            namespaces={key.namespace for key in keys},
            pods=[pod for pods in self._pods.values() for pod in pods],
            records=self._records.items.values(),
        )
        pruner = SourcePruner(
            client=self.client,
            source=source,
            ages=is_whole and gone is None,
            concurrency=self.concurrency,
            dry_run=mode,
        )
        return pruner.prune(self.config, seen, gone)

    def renames(self) -> list[str]:
        """Which new jobs run the same as one that has no spec since just now, in words."""
        records, source = self._records.items, self.render_config.source
        new = {key: job.spec_fields for key, job in self.jobs.items() if key not in records}
        return renames(new, missed(records.values(), source, self.jobs))

    def _list(self) -> None:
        """Records first: a pod that is in a record can't be missed so."""
        check_server_version(self.client)
        self._records, self._pods = RecordList(), {}
        namespaces = sorted({key.namespace for key in self.jobs})
        for namespace in namespaces:
            found = self.records.list(self.client, namespace)
            self._records.items.update(found.items)
            self._records.invalid.update(found.invalid)
        selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={self.render_config.source}"
        for namespace in namespaces:
            keep = partial(self._own_pod, namespace)
            for page in api.list_all(self.client, api.PODS.path(namespace), selector, keep=keep):
                for pod in page["items"]:
                    if parsed := parse_pod_name(pod["metadata"]["name"]):
                        self._pods.setdefault(JobKey(namespace, parsed[0]), []).append(pod)

    def _own_pod(self, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
        """Of a pod without a spec, which may have expired, no more than says so."""
        parsed = parse_pod_name(pod["metadata"]["name"])
        is_compared = parsed is not None and JobKey(namespace, parsed[0]) in self.jobs
        return pod if is_compared else slim_pod(pod)

    def _plan(self, job: Job) -> JobPlan:
        try:
            plan = self._plan_job(job)
        except errors.EngineError as error:
            plan = JobPlan(job, change_reason.PlannedAction.FAIL, str(error), error=error)
        mask = self.redactor.of(job.key)
        return replace(plan, reason=mask(plan.reason), next=mask(plan.next))

    def _plan_job(self, job: Job) -> JobPlan:
        """Errors: OwnershipError for what isn't this source's; InvalidInputError; the API's."""
        if job.key in self._records.invalid:
            raise self._records.invalid[job.key]
        state, action = self._decide(job)
        record, planned = state.record, change_reason.planned_action(state, action)
        if isinstance(action, actions.ReportError):
            raise errors.OwnershipError(action.message, hint=action.hint)
        following = change_reason.describe_action(state, action)
        plan = JobPlan(job, planned, "", change_reason.fields_changed(job, record), following)
        manifests = self._render(state, planned)
        if planned not in _STARTS:
            plan = replace(plan, outdated=outdated_fields(job, record))
        if planned is change_reason.PlannedAction.LEAVE:
            reason = with_outdated(change_reason.explain_rest(job, record, action), plan.outdated)
            return replace(plan, reason=reason)
        if planned not in _STARTS or manifests is None:
            return replace(plan, reason=plan.next)
        waits = waiting_words(state.observed.predecessors)
        reason = "; ".join(filter(None, (change_reason.explain_start(job, record), waits)))
        plan = replace(plan, reason=reason)
        if not self.server_side:
            return plan
        full, objects = self._find_no_room(state), list[ObjectDiff]()
        error = full
        try:
            for one in self._compare(state, action, manifests):
                objects.append(one)
        except errors.QuotaExceededError as refusal:
            error = refusal
        if error is None:
            return replace(plan, objects=tuple(objects))
        plan = replace(plan, reason=f"queued: {error.cause}")
        is_refused = full if isinstance(action, actions.WriteRecord) else not objects
        if not is_refused or not isinstance(action, actions.WriteRecord | actions.CreatePod):
            return plan  # what is made goes again
        again = Rejection(type(error), Masked(error.cause), state.now, quota=error.quota)
        if full or state.says_queued(again):
            # The record can't say it, or says so already: the next refusal writes nothing.
            return replace(plan, action=change_reason.PlannedAction.LEAVE, next="")
        queued = actions.WriteRecord(state.queued(state.run_record, again))
        return replace(plan, next=change_reason.describe_action(state, queued))

    def _find_no_room(self, state: LifecycleState) -> errors.QuotaExceededError | None:
        """Which quota has no room for the record of a job that has none. Errors: the API's."""
        if state.record is None and self.records is CONFIG_MAP_RECORDS:
            try:
                api.create(self.client, record_manifest(state.run_record), dry_run=True)
            except errors.QuotaExceededError as error:
                return error
        return None

    def _decide(self, job: Job) -> tuple[LifecycleState, actions.Action]:
        """The next write, or the wait. What the rules want to be read is read."""
        now, record = self.client.now(), self._records.items.get(job.key)
        pods = {uid_of(pod): pod for pod in self._pods.get(job.key, ())}
        observed, source = _observe(pods.values(), now), self.render_config.source
        pull, kept_runs = self.config.pull, self.config.records.history
        order = JobOrder(self.jobs, self._needs, self._records.items.get, source)
        predecessors = order.predecessors(job.key)
        for _ in range(_MAX_READS):
            observed.predecessors = predecessors
            state = LifecycleState(job, record, observed, now, source, pull, kept_runs)
            action = decide(state)
            match action:
                case actions.RefreshPod(name, uid):
                    pod = api.get(self.client, Ref("Pod", job.namespace, name))
                    pods.pop(uid, None)
                    pods |= {uid_of(pod): pod} if pod is not None else {}
                    gone = observed.deleted_uids | ({uid} - pods.keys())
                    observed = replace(_observe(pods.values(), now), deleted_uids=gone)
                case actions.CreateDependents(uid=uid, reported=bool(reported)) if (
                    not self._lacks_one(job, action)
                ):
                    observed.dependents_looked_up[uid, reported] = now
                case actions.FindPullCause(name, uid, container, image):
                    ref = Ref("Pod", job.namespace, name)
                    if (uid, container) not in observed.pull_causes:
                        cause = find_pull_cause(self.client, ref, uid, image)
                        observed.pull_causes[uid, container] = cause
                    observed.cached_images[uid, image] = False  # only words depend on it
                case _:
                    return state, action
        raise errors.EngineError(
            f"job {job.key} does not settle", hint="this is a defect: report it"
        )

    def _lacks_one(self, job: Job, action: actions.CreateDependents) -> bool:
        """Whether an object that the pod should own is missing; only its name is read."""
        config, number, policies = self.render_config, action.attempt, action.policies
        made, _ = try_render_attempt(config, job, number, policies, None)
        names = [ref_of(manifest) for manifest in made.dependents] if made is not None else []
        return any(api.get_metadata(self.client, name) is None for name in names)

    def _render(
        self, state: LifecycleState, planned: change_reason.PlannedAction
    ) -> Manifests | None:
        """The objects of the next attempt, with its secrets; None where none is to be created.

        Errors: InvalidInputError, as a reconcile has it before it writes anything.
        """
        job, run = state.job, state.run_record
        is_gated = any(gate_position(pod) is not None for pod in state.observed.pods)
        is_started = run.state.is_final or (run.open_attempt is not None and not is_gated)
        if planned not in _STARTS and is_started:
            return None
        secrets, problems = resolve_secrets(job, self.environment, self.config.limits)
        most = self.config.limits.max_source_bytes
        if not self.redactor.add(texts_to_mask(job, secrets), job.key, most=most):
            problems = (no_room(job),)
        manifests = None
        if not problems:
            policies, number = run.next_policies(job), run.next_number
            config = self.render_config
            manifests, problems = try_render_attempt(config, job, number, policies, secrets)
        if problems:
            raise errors.InvalidInputError(problems)
        return manifests

    def _compare(
        self, state: LifecycleState, action: actions.Action, sent: Manifests
    ) -> Iterator[ObjectDiff]:
        """What the server would make of each object, beside that of the newest pod of the record.

        An object that is still there would go before the new one is created. Errors: the API's.
        """
        record = state.record
        uids = [attempt.uid for attempt in reversed(record.attempts)] if record else []
        mask = self.redactor.of(state.job.key)
        uids += [run.uid for run in record.history] if record else []
        pod = next((pod for pod in map(state.pod_of, uids) if pod is not None), None)
        for manifest in (sent.pod, *sent.dependents):
            try:
                admitted = api.create(self.client, manifest, dry_run=True)
            except errors.AlreadyExistsError:
                if manifest is sent.pod and isinstance(action, actions.CreatePod):
                    raise
                continue
            name, before = ref_of(manifest), pod
            if pod is not None and name.kind != "Pod":
                before = None
                with suppress(errors.ForbiddenError):
                    ref = Ref(name.kind, name.namespace, pod["metadata"]["name"])
                    before = api.get(self.client, ref)
            if before is None:
                yield ObjectDiff(name, map_values(masked(manifest), mask))
                continue
            old = Ref(name.kind, name.namespace, before["metadata"]["name"])
            live, wanted = (
                map_values(comparable(one, manifest), mask) for one in (before, admitted)
            )
            yield ObjectDiff(name, wanted, old, live)


def _observe(pods: Iterable[Object], now: datetime) -> Observation:
    """Pods as they were listed just `now`, so that no rule asks for them again."""
    listed = tuple(pods)
    troubles = [(uid_of(pod), trouble) for pod in listed for trouble in pull_errors(pod)]
    return Observation(
        pods=listed,
        pull_causes={(u, one.name): one.message for u, one in troubles if has_pull_cause(one)},
        read_ungated={uid_of(pod) for pod in listed},
        refreshed_at={uid_of(pod): now for pod in listed},
        deletions={uid_of(pod): UNSEEN.seen(pod) for pod in listed},
    )
