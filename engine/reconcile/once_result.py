"""What `reconcile --once` is asked, and what it answers."""

from dataclasses import dataclass
from enum import StrEnum

from engine.api.model import Job
from engine.decide.record import Record
from engine.errors import EngineError


class WaitFor(StrEnum):
    FINISHED = "finished"
    APPLIED = "applied"


@dataclass(frozen=True, slots=True)
class OnceOptions:
    """How to run: times are seconds, a `timeout` of None waits for as long as it takes."""

    source: str
    concurrency: int = 16
    timeout: float | None = None
    queue_timeout: float = 600.0
    wait_for: WaitFor = WaitFor.FINISHED


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of one job in this invocation; `over` is false where nobody waited any longer."""

    job: Job
    record: Record | None
    changed: bool
    over: bool
    error: EngineError | None = None


@dataclass(frozen=True, slots=True)
class OnceResult:
    jobs: tuple[JobResult, ...]
    timed_out: bool = False
    interrupted: bool = False
