"""The jobs that are desired, and the state that the engine keeps of each."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from engine.api.model import Job
from engine.reconcile.job_state import JobState
from engine.refs import JobKey


@dataclass(frozen=True, slots=True)
class Changes:
    """What another reading of the specs brought."""

    added: tuple[JobKey, ...]
    changed: tuple[JobKey, ...]
    removed: tuple[JobKey, ...]


class JobStore:
    """Jobs by key; safe to use from several threads.

    Guarantees: a job never changes under a reconcile that is half-way; whoever checks it out for
    the next one finds the spec that is desired then. A job whose spec is gone keeps its state until
    it is forgotten: what has started of it goes on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._desired: dict[JobKey, Job] = {}
        self._states: dict[JobKey, JobState] = {}

    def update(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones, and no others."""
        with self._lock:
            before, self._desired = self._desired, dict(jobs)
        return Changes(
            tuple(key for key in jobs if key not in before),
            tuple(key for key, job in jobs.items() if before.get(key, job) is not job),
            tuple(key for key in before if key not in jobs),
        )

    def job(self, key: JobKey) -> Job | None:
        """The spec that is desired, without a touch to the state that a reconcile may have."""
        with self._lock:
            return self._desired.get(key)

    def checkout(self, key: JobKey) -> JobState | None:
        """State of a job for one reconcile, brought up to date; None for one nobody knows."""
        with self._lock:
            job = self._desired.get(key)
            state = self._states.get(key)
            if job is None:
                return state
            if state is None:
                state = self._states[key] = JobState(job)
            elif state.job is not job:
                state.replace_job(job)
            return state

    def forget(self, key: JobKey) -> bool:
        """Whether there was anything to forget; a job whose spec is desired is kept."""
        with self._lock:
            return key not in self._desired and self._states.pop(key, None) is not None

    def __contains__(self, key: JobKey) -> bool:
        with self._lock:
            return key in self._desired or key in self._states

    def is_desired(self, key: JobKey) -> bool:
        """Whether the job has a spec."""
        with self._lock:
            return key in self._desired

    @property
    def desired(self) -> frozenset[JobKey]:
        """The jobs that have a spec."""
        with self._lock:
            return frozenset(self._desired)

    @property
    def known(self) -> list[JobKey]:
        """Those, and the ones without a spec that are not forgotten yet."""
        with self._lock:
            return sorted({*self._desired, *self._states})

    def refused_records(self) -> dict[JobKey, str]:
        """Jobs whose record the server refuses, and its words."""
        with self._lock:
            rejections = {key: state.observed.rejection for key, state in self._states.items()}
        return {
            key: rejection.message
            for key, rejection in rejections.items()
            if rejection is not None and rejection.record_version is not None
        }
