"""Level-triggered reconcile of one job: observe, decide, act, until there is nothing to do now.

A thin shell: every decision is `engine.decide`'s, every write a step of `engine.reconcile.steps`.
"""

from dataclasses import dataclass
from datetime import datetime

from engine.api.model import Features, PullSettings
from engine.cluster.client import Client
from engine.decide import decide
from engine.decide.actions import (
    ConfirmGone,
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    FindCause,
    LookAgain,
    Refuse,
    RestoreDependents,
    StampExpiry,
    Step,
    Ungate,
    Wait,
    WriteRecord,
)
from engine.decide.record import Record
from engine.decide.situation import Observed, Situation, is_terminating, uid_of
from engine.errors import EngineError
from engine.reconcile.attempt_ends import AttemptEnds
from engine.reconcile.memory import JobMemory
from engine.reconcile.steps import Steps
from engine.refs import JobKey
from engine.status.containers import has_started
from engine.status.outcome import State
from engine.status.waiting import pull_errors
from engine.telemetry.events import (
    DependentRestored,
    Emit,
    PodRemoved,
    StateChanged,
    Trouble,
)

_MOST_STEPS = 100

Shown = dict[JobKey, tuple[object, ...]]
"""What was last shown of each job, so that it is shown once."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconcile came to: over for good, refused, or to be looked at again."""

    over: bool = False
    applied: bool = False
    refused: str = ""
    again_at: datetime | None = None


class Reconciler:
    """Reconciles jobs of one source.

    Guarantees: at most one write between two decisions; never two reconciles of one job at once,
    if its caller (the work queue) sees to that. Errors: those of the API that trying again may mend
    and those that it can't; what has been written stays valid either way.
    """

    def __init__(
        self,
        client: Client,
        steps: Steps,
        *,
        source: str,
        pull: PullSettings,
        features: Features,
        emit: Emit,
        shown: Shown | None = None,
    ) -> None:
        """`shown` is what another reconciler, under other settings, has shown already."""
        self._client = client
        self._steps = steps
        self._source = source
        self._pull = pull
        self._ends = AttemptEnds(client, emit, on_pods=features.events)
        self._emit = emit
        self._shown: Shown = {} if shown is None else shown

    def reconcile(self, memory: JobMemory) -> Result:
        for _ in range(_MOST_STEPS):
            situation = self._look(memory)
            action = decide(situation)
            match action:
                case Done():
                    return Result(over=True, applied=True)
                case Refuse(message):
                    return Result(over=True, refused=message)
                case Wait(until):
                    self._show_progress(memory, situation)
                    applied = situation.run_record.open_attempt is not None
                    if applied:
                        memory.refusal = None
                    return Result(applied=applied, again_at=until)
                case _:
                    self._carry_out(memory, action)
        raise EngineError(
            f"job {memory.job.key} does not settle", hint="this is a defect: report it"
        )

    def forget(self, key: JobKey) -> None:
        """The job is nobody's any more."""
        self._shown.pop(key, None)

    def _carry_out(self, memory: JobMemory, action: Step) -> None:
        match action:
            case CreatePod():
                self._steps.create_pod(memory, action)
            case CreateDependents():
                self._steps.create_dependents(memory, action)
            case WriteRecord():
                self._write(memory, action)
            case RestoreDependents():
                for ref in self._steps.restore_dependents(memory, action):
                    self._emit(DependentRestored(memory.job.key, ref))
            case Ungate():
                self._steps.ungate(memory, action)
            case DeletePod():
                if self._steps.delete_pod(memory, action):
                    self._emit(PodRemoved(memory.job.key, action.pod, action.why))
            case ConfirmGone():
                self._steps.confirm_gone(memory, action)
            case LookAgain():
                self._steps.look_again(memory, action)
            case FindCause():
                self._steps.find_cause(memory, action)
            case StampExpiry():
                self._steps.stamp_expiry(memory, action)

    def _look(self, memory: JobMemory) -> Situation:
        job, now = memory.job, self._client.now()
        informer = self._steps.pods(job.namespace)
        pods = informer.pods(job.key)
        for uid in memory.gone - memory.ends.keys():
            if (end := informer.end_of(uid)) is not None:
                memory.ends[uid] = end
        for pod in pods:
            for trouble in pull_errors(pod):
                place = (uid_of(pod), trouble.container)
                memory.failing_since.setdefault(place, now)
                if trouble.has_cause:
                    memory.causes.setdefault(place, trouble.message)
        observed = Observed(
            pods,
            frozenset(memory.settled),
            frozenset(memory.gone),
            memory.refusal,
            memory.causes,
            memory.failing_since,
            memory.ends,
            memory.asked,
            memory.looked_up,
            {uid_of(pod): informer.deletion_of(uid_of(pod)) for pod in pods if is_terminating(pod)},
        )
        return Situation(job, memory.record, observed, now, self._source, self._pull)

    def _write(self, memory: JobMemory, action: WriteRecord) -> None:
        before = memory.record
        if not self._steps.write_record(memory, action):
            self._emit(
                Trouble(memory.job.key, "another engine wrote this job's record first", True)
            )
            return
        record = memory.record or action.record
        self._ends.tell(memory.job, before, record)
        self._show(memory.job.key, record.state, record, record.message)

    def _show_progress(self, memory: JobMemory, situation: Situation) -> None:
        record = situation.run_record
        attempt = record.open_attempt
        pod = situation.pod_of(attempt.uid) if attempt and attempt.uid else None
        if pod is not None and has_started(pod):
            self._show(memory.job.key, State.RUNNING, record, "")

    def _show(self, key: JobKey, state: State, record: Record, message: str) -> None:
        """A line per change of state, not per write."""
        number = record.last.number if record.last else 0
        shown = (record.run, state, number if not state.is_final else 0, record.reason)
        if self._shown.get(key) != shown:
            self._shown[key] = shown
            self._emit(StateChanged(key, state, record.reason, message, number))
