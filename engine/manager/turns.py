"""A turn of a job in an engine that stays: refresh, prepare, reconcile, when to look again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.cluster.client import Client
from engine.errors import EngineError, InvalidInputError
from engine.manager.jobs import Jobs
from engine.manager.settings import Settings
from engine.reconcile.attempt_manifests import Rendering
from engine.reconcile.attend import attend
from engine.reconcile.memory import JobMemory
from engine.reconcile.preflight import prepare
from engine.reconcile.reconciler import Result
from engine.reconcile.run_state import is_over, is_under_way
from engine.reconcile.watches import Watches
from engine.refs import JobKey
from engine.runtime.rate_limiter import ItemRateLimiter
from engine.telemetry.events import Emit, JobForgotten, JobUnchanged, SpecProblem, Trouble
from engine.telemetry.redact import Redactor

_SAY_AFTER = 3
_LONGEST_WAIT, _LONGEST_HOPELESS_WAIT = 15.0, 300.0


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn came to: when to look again in seconds (None: when something happens), and the
    class of the error there was.
    """

    again: float | None = None
    error: str = ""


class Turns:
    """Gives jobs their turns. Safe to use from several threads, one turn of a job at a time.

    Guarantees: a job whose spec is gone isn't started any more, but what runs of it goes on to its
    outcome. A job that can't be prepared or reconciled is told of once per cause and tried again,
    ever more seldom; it never stops another one. `unprepared` are those whose secrets or templates
    stand in the way: another file may help. Errors: none.
    """

    def __init__(
        self,
        client: Client,
        source: str,
        jobs: Jobs,
        watches: Watches,
        environment: Mapping[str, str],
        redactor: Redactor,
        emit: Emit,
        settings: Callable[[], Settings],
    ) -> None:
        self._client = client
        self._source = source
        self._jobs = jobs
        self._watches = watches
        self._environment = environment
        self._redactor = redactor
        self._emit = emit
        self._settings = settings
        self.limit = ItemRateLimiter()
        self.unprepared: set[JobKey] = set()

    def take(self, key: JobKey) -> Turn:
        memory = self._jobs.take(key)
        if memory is None:
            return Turn()
        if not self._watches.has_synced(key.namespace):
            if not self._jobs.is_living(key):
                self.forget(key)
            return Turn()
        try:
            memory.record = self._watches.records(key.namespace).newest(key, memory.record)
            if not self._jobs.is_living(key) and not self._has_started(memory):
                self.forget(key)
                return Turn()
            settings = self._settings()
            self._prepare(memory, settings.rendering)
        except EngineError as error:
            return self._failed(memory, error)
        result = attend(self._client, settings.reconciler, self._watches.line, memory)
        if isinstance(result, EngineError):
            return self._failed(memory, result)
        return self._went_well(memory, result)

    def _prepare(self, memory: JobMemory, rendering: Rendering) -> None:
        """Errors: InvalidInputError with what stands in the way of the next attempt."""
        if memory.stale:
            memory.forget_preparation()
        if memory.prepared or is_over(memory, self._source):
            return
        pods = self._watches.pods(memory.job.namespace).pods(memory.job.key)
        problems = prepare(
            memory,
            rendering,
            self._environment,
            self._redactor,
            to_start=not is_under_way(memory, pods),
        )
        if problems:
            raise InvalidInputError(problems)
        memory.prepared = True
        self.unprepared.discard(memory.job.key)

    def _has_started(self, memory: JobMemory) -> bool:
        """Whether there is anything to see through to its end.

        Where a watch may not tell in time of a pod whose create was never answered, the API is
        asked. Errors: those of the list.
        """
        record, key = memory.record, memory.job.key
        if record is not None and record.state.is_final:
            return False
        attempt = record.open_attempt if record else None
        informer = self._watches.pods(key.namespace)
        if memory.unanswered:
            informer.refresh(key)
            memory.unanswered = False
        return bool(informer.pods(key)) or attempt is not None

    def _went_well(self, memory: JobMemory, result: Result) -> Turn:
        key = memory.job.key
        self.limit.forget(key)
        if result.refused:
            self._tell(memory, Trouble(key, result.refused, retrying=False))
            return Turn()
        memory.told = ""
        if result.over:
            self._is_over(memory)
            return Turn()
        if result.again_at is None:
            return Turn()
        return Turn(max(0.0, (result.again_at - self._client.now()).total_seconds()))

    def _is_over(self, memory: JobMemory) -> None:
        key, record = memory.job.key, memory.record
        if not memory.writes and not memory.seen and record is not None:
            self._emit(JobUnchanged(key, record.state))
        memory.seen = True
        memory.rest()
        if not self._jobs.is_living(key):
            self.forget(key)

    def _failed(self, memory: JobMemory, error: EngineError) -> Turn:
        key = memory.job.key
        longest = _LONGEST_WAIT if error.retryable else _LONGEST_HOPELESS_WAIT
        wait = self.limit.when(key, longest=longest)
        if isinstance(error, InvalidInputError):
            self.unprepared.add(key)
            memory.forget_preparation()
            self._tell(memory, *(SpecProblem(str(problem)) for problem in error.problems))
        elif not error.retryable or self.limit.failures(key) >= _SAY_AFTER:
            self._tell(memory, Trouble(key, str(error), retrying=True))
        wait = max(wait, getattr(error, "retry_after", 0.0))
        return Turn(wait, type(error).__name__)

    def _tell(self, memory: JobMemory, *events: SpecProblem | Trouble) -> None:
        """Once for as long as the cause stays the same."""
        words = str(events)
        if memory.told != words:
            memory.told = words
            for event in events:
                self._emit(event)

    def forget(self, key: JobKey) -> None:
        """Nothing is left to be done for a job without a spec; one that has a spec is kept."""
        self._watches.line.leave(key)
        self.limit.forget(key)
        self.unprepared.discard(key)
        if self._jobs.forget(key):
            self._settings().reconciler.forget(key)
            self._emit(JobForgotten(key))
