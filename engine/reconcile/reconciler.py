"""Level-triggered reconcile of one job: observe, decide, act, until there is nothing to do now.

A thin shell: every decision is `engine.lifecycle`'s, every write the executor's.
"""

from dataclasses import dataclass
from datetime import datetime

from engine.api.model import PullSettings, RecordSettings
from engine.errors import EngineError, OwnershipError
from engine.lifecycle.actions import Action, Done, ReportError, Wait
from engine.lifecycle.rules import decide
from engine.lifecycle.state import LifecycleState, is_terminating, uid_of
from engine.reconcile.executor import ActionExecutor
from engine.reconcile.job_store import TrackedJob
from engine.status.waiting import pull_errors

_MOST_STEPS = 100


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
        self.reporter = executor.reporter
        self._executor = executor
        self._pull = pull
        self._kept_runs = kept_runs

    def reconcile(self, tracked: TrackedJob) -> Result:
        """Do what can be done now.

        Errors: OwnershipError for a job of another source, or a pod in its way; those of the API
        that trying again may mend and those that it can't. What has been written stays valid
        either way.
        """
        tracked.unrecorded, tracked.conflicts = None, 0
        for _ in range(_MOST_STEPS):
            state, action = self.next_action(tracked)
            match action:
                case Done():
                    self.reporter.report_end(tracked)
                    return Result(finished=True, started=True)
                case ReportError(message, hint, kind):
                    if kind is None:
                        raise OwnershipError(message, hint=hint)
                    raise kind(message, hint=hint, status=403, reason="Forbidden")
                case Wait(until, unrecorded):
                    tracked.unrecorded = unrecorded
                    self.reporter.report_waiting(tracked, state)
                    started = state.run_record.open_attempt is not None
                    if started and state.rejected_record() is None:
                        tracked.observed.rejection = None
                    return Result(started=started, requeue_at=until)
                case _:
                    self._executor.execute(tracked, action)
        raise EngineError(
            f"job {tracked.job.key} does not settle", hint="this is a defect: report it"
        )

    def next_action(self, tracked: TrackedJob) -> tuple[LifecycleState, Action]:
        """What `lifecycle` makes of what is known now."""
        executor, job, known = self._executor, tracked.job, tracked.observed
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
        known.pods = pods
        terminating = [uid_of(pod) for pod in pods if is_terminating(pod)]
        known.deletions = {uid: informer.deletion_of(uid) for uid in terminating}
        source = executor.config.source
        state = LifecycleState(job, tracked.record, known, now, source, self._pull, self._kept_runs)
        return state, decide(state)
