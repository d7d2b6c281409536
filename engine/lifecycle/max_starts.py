"""How many new runs may begin at once: lost records would otherwise start every job of a source."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from engine.api.model import Job, Limits
from engine.errors import UsageError
from engine.lifecycle.record import Record
from engine.lifecycle.state import gate_position, run_of
from engine.refs import JobKey

FEW = 10


class NewRun(StrEnum):
    """Why a job starts a new run."""

    NO_RECORD = "no record of"
    CHANGED = "another spec than in the record of"
    TRIED_ANEW = "another timeout, retry or the like than in the failed record of"


def new_run(job: Job, record: Record | None, pods: Iterable[Mapping[str, Any]]) -> NewRun | None:
    """Why `job` starts a new run; None if its run has begun or is over.

    A pod without our gate was recorded once. If its record is gone, the job doesn't start anew.
    Beside a record such a pod says nothing: a spec that is as it once was runs again.
    """
    if record is not None and record.tried_anew(job):
        return NewRun.TRIED_ANEW
    if record is None:
        begun = any(run_of(pod) == job.run and gate_position(pod) is None for pod in pods)
        return None if begun else NewRun.NO_RECORD
    return None if record.spec_hash == job.spec_hash else NewRun.CHANGED


class MaxStarts(Struct, frozen=True):
    """How many runs may begin at once, and which setting says so."""

    limit: int | None
    """None for any number."""
    name: str = "limits.maxStarts"

    @classmethod
    def of(cls, flag: int | None, limits: Limits) -> "MaxStarts":
        """The command line's limit, else the operator's."""
        return cls(limits.max_starts) if flag is None else cls(flag, "--max-starts")

    def check(self, new_runs: Mapping[JobKey, NewRun]) -> None:
        """Errors: UsageError that names the jobs if there are more than the limit."""
        count = len(new_runs)
        if self.limit is None or count <= self.limit:
            return
        listed = (
            f"{why} {name_jobs(sorted(key for key, found in new_runs.items() if found is why))}"
            for why in NewRun
            if why in new_runs.values()
        )
        runs = "a new run" if count == 1 else "new runs"
        jobs = "job" if count == 1 else "jobs"
        raise UsageError(
            f"{count:,} {jobs} would start {runs}, {self.name} allows {self.limit:,}: "
            f"none is started; {'; '.join(listed)}",
            hint="were records deleted, or is this another namespace or --source than before? "
            f"If it is meant: --max-starts {count}",
        )


def name_jobs(keys: Collection[JobKey]) -> str:
    """The first ten, and the number of the others."""
    shown = ", ".join(map(str, [*keys][:FEW]))
    more = len(keys) - FEW
    return f"{shown} and {more:,} more" if more > 0 else shown
