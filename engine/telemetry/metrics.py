"""Metrics of an engine that stays: what has happened, counted, and what is asked at each scrape.

Nothing here imports prometheus_client before there is a `Metrics`: most commands never have one.
No label ever holds a job's name, so that the number of series doesn't grow with the jobs.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry.events import (
    AttemptFailed,
    Event,
    LeaderChanged,
    ObjectPruned,
    PullPolicyFallback,
    SpecsRead,
    StateChanged,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from engine.telemetry.instruments import GaugeSources

OK = ""


class Metrics:
    """An `Emit` listener with a registry of its own; safe to use from several threads.

    Guarantees: listening never raises and does no I/O. A source that raises costs its own metric
    in that scrape, nothing else.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        from engine.telemetry.instruments import Instruments  # noqa: PLC0415 - see above

        self._instruments = Instruments()
        self._monotonic = monotonic
        self._starting_since: dict[JobKey, float] = {}

    @property
    def registry(self) -> "CollectorRegistry":
        """Where the metrics are registered."""
        return self._instruments.registry

    def bind(self, sources: "GaugeSources") -> None:
        """From now on ask these; metrics may be served before there is anything to ask."""
        self._instruments.asked.sources = sources

    def __call__(self, event: Event) -> None:
        """Count what the event says."""
        count = self._instruments
        match event:
            case StateChanged(key, state, reason):
                self._observe_start(key, state)
                if state.is_final:
                    count.outcomes.labels(reason or state).inc()
            case AttemptFailed(_, _, _, reason):
                count.attempts_failed.labels(reason).inc()
            case PullPolicyFallback():
                count.pull_fallbacks.labels(event.pull_class).inc()
            case ObjectPruned(ref, action):
                count.pruned.labels(ref.kind, action).inc()
            case SpecsRead(files):
                count.spec_reads.inc()
                count.spec_files.set(files)
            case LeaderChanged(leads):
                count.asked.leads = leads
                self._starting_since.clear()
            case _:
                pass

    def _observe_start(self, key: JobKey, state: State) -> None:
        """What ran and ended between two looks counts with its running."""
        if state is State.STARTING:
            self._starting_since.setdefault(key, self._monotonic())
            return
        since = self._starting_since.pop(key, None)
        if since is not None and state in (State.RUNNING, State.SUCCEEDED):
            self._instruments.starting.observe(self._monotonic() - since)

    def observe_reconcile(self, seconds: float, error: str = OK) -> None:
        """One look at one job; `error` is the name of the error's class, "" without one."""
        self._instruments.reconcile_duration.observe(seconds)
        if error != OK:
            self._instruments.reconcile_errors.labels(error).inc()

    def observe_queue_wait(self, seconds: float) -> None:
        """How long a key was ready before a worker took it."""
        self._instruments.queue_wait.observe(seconds)

    def exposition(self, accept: str) -> tuple[str, bytes]:
        """Content type and text in the format that an Accept header asks for."""
        return self._instruments.expose(accept)
