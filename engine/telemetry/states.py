"""How many jobs are in each state, counted from what is told of them."""

import threading
from collections import Counter
from collections.abc import Mapping

from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry.events import Event, JobUnchanged, JobUnmanaged, StateChanged


class StateCounts:
    """An `Emit` listener; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[JobKey, State] = {}
        self._counts: Counter[State] = Counter()

    def __call__(self, event: Event) -> None:
        """Follow one event."""
        match event:
            case StateChanged(key, state) | JobUnchanged(key, state):
                with self._lock:
                    self._remove(key)
                    self._states[key] = state
                    self._counts[state] += 1
            case JobUnmanaged(key):
                with self._lock:
                    self._remove(key)
            case _:
                pass

    def counts(self) -> Mapping[State, int]:
        """Every state, also those that no job is in."""
        with self._lock:
            return {state: self._counts[state] for state in State}

    def _remove(self, key: JobKey) -> None:
        before = self._states.pop(key, None)
        if before is not None:
            self._counts[before] -= 1
