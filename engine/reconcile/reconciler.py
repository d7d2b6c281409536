"""Level-triggered reconcile of one job: observe, decide, act, until there is nothing to do now.

A thin shell: every decision is `engine.decide`'s, every write the executor's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from engine.api.model import PullSettings, RecordSettings
from engine.decide.actions import Action, Done, RejectForeign, ReportRejection, Wait
from engine.decide.rules import decide
from engine.decide.situation import (
    Observed,
    Rejection,
    RejectionKind,
    Situation,
    is_terminating,
    uid_of,
)
from engine.errors import (
    AdmissionRefusedError,
    ApiError,
    EngineError,
    ForbiddenError,
    OwnershipError,
    QuotaExceededError,
)
from engine.reconcile.executor import ActionExecutor
from engine.reconcile.job_state import JobState
from engine.status.waiting import pull_errors

_MOST_STEPS = 100
_REJECTION_ERRORS: Mapping[RejectionKind, type[ApiError]] = {
    RejectionKind.QUOTA: QuotaExceededError,
    RejectionKind.ADMISSION: AdmissionRefusedError,
    RejectionKind.RIGHTS: ForbiddenError,
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconcile came to."""

    finished: bool = False
    """The run is over, and nothing is left to do."""
    started: bool = False
    """The pod of an attempt may run."""
    requeue_at: datetime | None = None
    """When to reconcile without an event; None for not before one."""


class Reconciler:
    """Reconciles jobs of one source.

    Guarantees: at most one write between two decisions; never two reconciles of one job at once,
    if its caller (the work queue) sees to that.
    """

    def __init__(
        self,
        executor: ActionExecutor,
        pull: PullSettings,
        kept_runs: int = RecordSettings().history,
    ) -> None:
        self._executor = executor
        self._pull = pull
        self._kept_runs = kept_runs

    def reconcile(self, state: JobState) -> Result:
        """Do what can be done now.

        Errors: OwnershipError for a job of another source, or a pod in its way; those of the API
        that trying again may mend and those that it can't. What has been written stays valid
        either way.
        """
        state.unrecorded, state.conflicts = None, 0
        for _ in range(_MOST_STEPS):
            situation, action = self.next_action(state)
            match action:
                case Done():
                    self._executor.reporter.report_end(state)
                    return Result(finished=True, started=True)
                case RejectForeign(message, hint):
                    raise OwnershipError(message, hint=hint)
                case ReportRejection(rejection):
                    raise _error_of(rejection)
                case Wait(until, unrecorded):
                    state.unrecorded = unrecorded
                    reporter = self._executor.reporter
                    reporter.report_progress(state, situation)
                    reporter.report_unrecorded(state)
                    reporter.report_strangers(state, situation)
                    started = situation.run_record.open_attempt is not None
                    if started:
                        state.observed.rejection = None
                    return Result(started=started, requeue_at=until)
                case _:
                    self._executor.execute(state, action)
        raise EngineError(
            f"job {state.job.key} does not settle", hint="this is a defect: report it"
        )

    def next_action(self, state: JobState) -> tuple[Situation, Action]:
        """What `decide` makes of what is known now."""
        situation = self._observe(state)
        return situation, decide(situation)

    def _observe(self, state: JobState) -> Situation:
        executor, job, known = self._executor, state.job, state.observed
        now, informer = executor.client.now(), executor.informers.pods(job.namespace)
        pods = informer.items(job.key)
        for uid in known.deleted_uids - known.deleted_outcomes.keys():
            if (outcome := informer.deleted_outcome(uid)) is not None:
                known.deleted_outcomes[uid] = outcome
        for pod in pods:
            for trouble in pull_errors(pod):
                place = (uid_of(pod), trouble.container)
                known.pull_failing_since.setdefault(place, now)
                if trouble.has_cause:
                    known.pull_causes.setdefault(place, trouble.message)
        terminating = [uid_of(pod) for pod in pods if is_terminating(pod)]
        observed = Observed(
            pods=pods,
            created=known.created,
            adopted=known.adopted,
            labels_restored_at=known.labels_restored_at,
            dependents_ready=known.dependents_ready,
            secrets_missing=known.secrets_missing,
            deleted_uids=known.deleted_uids,
            rejection=known.rejection,
            pull_causes=known.pull_causes,
            pull_failing_since=known.pull_failing_since,
            deleted_outcomes=known.deleted_outcomes,
            refreshed_at=known.refreshed_at,
            dependents_looked_up=known.dependents_looked_up,
            deletions={uid: informer.deletion_of(uid) for uid in terminating},
        )
        source = executor.config.source
        return Situation(job, state.record, observed, now, source, self._pull, self._kept_runs)


def _error_of(rejection: Rejection) -> ApiError:
    kind = _REJECTION_ERRORS[rejection.kind]
    return kind(rejection.message, hint=rejection.hint, status=403, reason="Forbidden")
