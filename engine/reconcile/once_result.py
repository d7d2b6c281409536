"""The request and the result of `reconcile --once`."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.api.model import Config, Job
from engine.cluster.client import Client
from engine.errors import EngineError
from engine.lifecycle.record import Record
from engine.render.templates import Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceRequest:
    """Which jobs are to be reconciled, where, and how.

    Times are seconds; a `timeout` of None waits for as long as it takes.
    """

    client: Client
    jobs: Sequence[Job]
    config: Config
    templates: Templates
    source: str
    is_whole: bool = False
    """Whether the source has no other jobs for certain: only then can a spec be missed."""
    concurrency: int = 16
    timeout: float | None = None
    queue_timeout: float = 600.0
    until_started: bool = False
    """Whether it is enough that every job was started."""
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
    """What became of one job in this invocation; `over` is false where the wait ended first."""

    job: Job
    record: Record | None
    changed: bool
    over: bool
    error: EngineError | None = None
    log: LogEnd | None = None
    """Of what failed in this invocation, if there was a log."""


@dataclass(frozen=True, slots=True)
class OnceResult:
    """What became of the whole invocation."""

    jobs: tuple[JobResult, ...]
    """Every job of the source."""
    timed_out: bool = False
    """Whether --timeout was reached."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""
