"""A brake on new runs: records that were lost, or a namespace typed wrong, would start everything.

What one reading of the source would start beyond the operator's limit starts nothing at all.
"""

import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.api.model import Job, Limits
from engine.decide.record import Record
from engine.decide.situation import gate_position, run_of
from engine.errors import BrokenRecordError, UsageError
from engine.informers.factory import InformerFactory
from engine.reconcile.job_store import Changes, JobStore
from engine.refs import JobKey

_LISTED = 10


class NewRun(StrEnum):
    """Why a job is to run anew."""

    NO_RECORD = "no record of"
    CHANGED = "another spec than in the record of"


@dataclass(frozen=True, slots=True)
class StartLimit:
    """How many runs may begin at once, and who says so."""

    most: int | None
    """None for any number."""
    flag: bool = False
    """Whether it is --max-starts, which goes before limits.maxStarts."""

    @property
    def name(self) -> str:
        """What the user knows it by."""
        return "--max-starts" if self.flag else "limits.maxStarts"

    def require(self, new_runs: Mapping[JobKey, NewRun]) -> None:
        """Errors: UsageError that names the jobs, when they are too many."""
        count, most = len(new_runs), self.most
        if most is None or count <= most:
            return
        listed = (
            f"{why} {name_jobs(sorted(key for key, found in new_runs.items() if found is why))}"
            for why in NewRun
            if why in new_runs.values()
        )
        jobs = (
            f"{count:,} job{' would start a new run' if count == 1 else 's would start new runs'}"
        )
        raise UsageError(
            f"{jobs}, {self.name} allows {most:,}: none is started; {'; '.join(listed)}",
            hint="were records deleted, or is this another namespace or --source than before? "
            f"If it is meant: --max-starts {count}",
        )


def start_limit(flag: int | None, limits: Limits) -> StartLimit:
    """What the command line says, else the operator's configuration."""
    return StartLimit(limits.max_starts) if flag is None else StartLimit(flag, flag=True)


def new_run(job: Job, record: Record | None, pods: Iterable[Mapping[str, Any]]) -> NewRun | None:
    """Why `job` is to run anew; None if it has begun, or is over.

    A pod that may run was recorded once: where its record was deleted it is taken up, or refused.
    """
    if any(run_of(pod) == job.run and gate_position(pod) is None for pod in pods):
        return None
    if record is None:
        return NewRun.NO_RECORD
    return None if record.spec_hash == job.spec_hash else NewRun.CHANGED


class StartBrake:
    """Of an engine that stays: which jobs are desired, and which of them may not begin, or not yet.

    Each reading of the specs is judged by itself, so that jobs that are held stop no others; those
    are judged again, as one reading, for as long as they are. Nor does a namespace that can't be
    read stop others: its jobs are judged once it can be. Safe to use from several threads.
    """

    def __init__(self, store: JobStore, informers: InformerFactory, flag: int | None) -> None:
        self.limit = StartLimit(None)
        """As `configure` has set it."""
        self._store = store
        self._informers = informers
        self._flag = flag
        self._lock = threading.Lock()
        self._unjudged: frozenset[JobKey] = frozenset()
        self._held: frozenset[JobKey] = frozenset()

    def __contains__(self, key: JobKey) -> bool:
        with self._lock:
            return key in self._unjudged or key in self._held

    @property
    def held(self) -> list[JobKey]:
        """Jobs that were judged to be too many."""
        with self._lock:
            return sorted(self._held)

    @property
    def remark(self) -> str:
        """Which those are; "" if there is none."""
        held = self.held
        return f"held by {self.limit.name}: {name_jobs(held)}" if held else ""

    def configure(self, limits: Limits) -> None:
        """Put `limits` in force."""
        self.limit = start_limit(self._flag, limits)

    def sync(self, jobs: Mapping[JobKey, Job]) -> Changes:
        """Make `jobs` the desired ones, of which nothing begins that hasn't been judged as a whole:
        not even one that a worker comes upon at this moment.
        """
        with self._lock:
            changes = self._store.update(jobs)
            if self.limit.most is not None:
                self._unjudged |= {*changes.added, *changes.changed}
            self._held -= self._unjudged.union(changes.removed)
            self._unjudged -= frozenset(changes.removed)
            return changes

    def judge(self) -> tuple[frozenset[JobKey], UsageError | None]:
        """(jobs that may go on, why others may not, if that is news)."""
        released: frozenset[JobKey] = frozenset()
        refusal = None
        with self._lock:
            for jobs in (self._unjudged, self._held):
                keys = frozenset(key for key in jobs if not self.is_failing(key.namespace))
                found = self.new_runs(keys) if keys else None
                if found is None:
                    continue
                held: frozenset[JobKey] = frozenset()
                try:
                    self.limit.require(found)
                except UsageError as error:
                    held = frozenset(found)
                    refusal = refusal if held <= self._held else error
                released |= keys - held
                self._unjudged -= keys
                self._held = (self._held - keys) | held
        return released, refusal

    def is_failing(self, namespace: str) -> bool:
        """Whether nobody can tell what a namespace has."""
        return self._informers.is_failing(namespace)

    def new_runs(self, keys: Iterable[JobKey]) -> dict[JobKey, NewRun] | None:
        """Those of the jobs that would begin one; None before their namespaces have been read."""
        found: dict[JobKey, NewRun] = {}
        informers = self._informers
        for key in keys:
            if not informers.has_synced(key.namespace):
                return None
            job, pods = self._store.job(key), informers.pods(key.namespace).items(key)
            with suppress(BrokenRecordError):
                record = informers.records(key.namespace).newest(key, None)
                why = new_run(job, record, pods) if job is not None else None
                if why is not None:
                    found[key] = why
        return found


def name_jobs(keys: Collection[JobKey]) -> str:
    """The first of them, and how many more there are."""
    shown = ", ".join(map(str, [*keys][:_LISTED]))
    more = len(keys) - _LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown
