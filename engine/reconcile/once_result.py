"""What `reconcile --once` is asked, and what it answers."""

from dataclasses import dataclass
from enum import StrEnum

from engine.api.model import Job
from engine.decide.record import Record
from engine.errors import EngineError


class WaitFor(StrEnum):
    """How far `--wait` lets every job get."""

    FINISHED = "finished"
    """Until its run is over."""
    APPLIED = "applied"
    """Until it is started."""


@dataclass(frozen=True, slots=True)
class OnceOptions:
    """How to run: times are seconds, a `timeout` of None waits for as long as it takes."""

    source: str
    concurrency: int = 16
    timeout: float | None = None
    queue_timeout: float = 600.0
    wait_for: WaitFor = WaitFor.FINISHED
    max_starts: int | None = None
    """How many new runs may begin; None for what `limits.maxStarts` says."""
    prune_in: tuple[str, ...] | None = None
    """None unless jobs without a spec are to be removed; else the namespaces where their records
    are looked for if the engine may not look everywhere.
    """


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The last lines of a container that failed."""

    attempt: int
    """The attempt's number."""
    pod: str
    """The pod's name."""
    container: str
    """The container's name."""
    lines: tuple[str, ...]
    """As the container wrote them."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of one job in this invocation; `over` is false where nobody waited any longer."""

    job: Job
    record: Record | None
    changed: bool
    over: bool
    error: EngineError | None = None
    log: LogEnd | None = None
    """Of what failed in this invocation, if there was a log."""

    @property
    def log_tail(self) -> tuple[str, ...]:
        """Its lines."""
        return self.log.lines if self.log is not None else ()


@dataclass(frozen=True, slots=True)
class OnceResult:
    """What became of the whole invocation."""

    jobs: tuple[JobResult, ...]
    """Every job of the source."""
    timed_out: bool = False
    """Whether --timeout was reached."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""
