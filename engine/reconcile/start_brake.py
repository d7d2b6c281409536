"""A brake on new runs: records that were lost, or a namespace typed wrong, would start everything.

What one reading of the source would start beyond the operator's limit starts nothing at all.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.api.model import Job, Limits
from engine.decide.record import Record
from engine.decide.situation import gate_position, run_of
from engine.errors import UsageError
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

    def require(self, new_runs: Mapping[JobKey, NewRun]) -> None:
        """Errors: UsageError that names the jobs, when they are too many."""
        count, most = len(new_runs), self.most
        if most is None or count <= most:
            return
        named = "--max-starts" if self.flag else "limits.maxStarts"
        listed = (
            f"{why} {_names(sorted(key for key, found in new_runs.items() if found is why))}"
            for why in NewRun
            if why in new_runs.values()
        )
        jobs = (
            f"{count:,} job{' would start a new run' if count == 1 else 's would start new runs'}"
        )
        raise UsageError(
            f"{jobs}, {named} allows {most:,}: none is started; {'; '.join(listed)}",
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
    """Of an engine that stays: jobs whose new runs may not begin, or not yet.

    Each reading of the specs is judged by itself, so that jobs that are held stop no others; those
    are judged again, as one reading, for as long as they are. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unjudged: frozenset[JobKey] = frozenset()
        self._held: frozenset[JobKey] = frozenset()

    def __contains__(self, key: JobKey) -> bool:
        with self._lock:
            return key in self._unjudged or key in self._held

    def add(self, keys: Iterable[JobKey]) -> None:
        """What another reading brought: not to begin before it is judged."""
        with self._lock:
            self._unjudged |= frozenset(keys)
            self._held -= self._unjudged

    def discard(self, keys: Iterable[JobKey]) -> None:
        """Jobs that have no spec any more."""
        with self._lock:
            self._unjudged -= frozenset(keys)
            self._held -= frozenset(keys)

    def judge(
        self,
        limit: StartLimit,
        new_runs: Callable[[Iterable[JobKey]], Mapping[JobKey, NewRun] | None],
    ) -> tuple[frozenset[JobKey], UsageError | None]:
        """(jobs that may go on, why others may not, if that is news).

        `new_runs` says which of the jobs would begin one; None while it can't be known.
        """
        released: frozenset[JobKey] = frozenset()
        refusal = None
        with self._lock:
            for keys in filter(None, (self._unjudged, self._held)):
                found = new_runs(keys)
                if found is None:
                    continue
                held: frozenset[JobKey] = frozenset()
                try:
                    limit.require(found)
                except UsageError as error:
                    held = frozenset(found)
                    refusal = refusal if held <= self._held else error
                released |= keys - held
                self._unjudged -= keys
                self._held = (self._held - keys) | held
        return released, refusal


def _names(keys: Collection[JobKey]) -> str:
    shown = ", ".join(map(str, [*keys][:_LISTED]))
    more = len(keys) - _LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown
