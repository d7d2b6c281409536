"""The jobs that are in force, and what the engine remembers of each."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from engine.api.model import Job
from engine.reconcile.memory import JobMemory
from engine.refs import JobKey
from engine.render.variables import SecretValues


@dataclass(frozen=True, slots=True)
class Changes:
    """What another reading of the specs brought."""

    added: tuple[JobKey, ...]
    changed: tuple[JobKey, ...]
    removed: tuple[JobKey, ...]


class Jobs:
    """Jobs by key; safe to use from several threads.

    Guarantees: a job never changes under a turn that is half-way; whoever takes its memory for a
    new turn finds the spec that is in force then. A job whose spec is gone is `retired`: what has
    started of it goes on, and it is remembered until somebody forgets it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: dict[JobKey, Job] = {}
        self._memories: dict[JobKey, JobMemory] = {}

    def update(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Put `jobs` in force, and no others."""
        with self._lock:
            before, self._living = self._living, dict(jobs)
        return Changes(
            tuple(key for key in jobs if key not in before),
            tuple(key for key, job in jobs.items() if before.get(key, job) is not job),
            tuple(key for key in before if key not in jobs),
        )

    def take(self, key: JobKey) -> JobMemory | None:
        """Memory of a job for one turn, brought up to date; None for one nobody knows."""
        with self._lock:
            job = self._living.get(key)
            memory = self._memories.get(key)
            if job is None:
                return memory
            if memory is None:
                memory = self._memories[key] = JobMemory(job, SecretValues())
            elif memory.job is not job:
                memory.replace_job(job)
            return memory

    def is_living(self, key: JobKey) -> bool:
        with self._lock:
            return key in self._living

    def forget(self, key: JobKey) -> bool:
        """Whether there was anything to forget; a job whose spec is in force is kept."""
        with self._lock:
            return key not in self._living and self._memories.pop(key, None) is not None

    def forget_preparations(self) -> None:
        """Render and resolve anew before anything more is created: the settings have changed."""
        with self._lock:
            for memory in self._memories.values():
                memory.stale = True

    @property
    def living(self) -> frozenset[JobKey]:
        with self._lock:
            return frozenset(self._living)

    @property
    def memories(self) -> list[JobMemory]:
        with self._lock:
            return list(self._memories.values())
