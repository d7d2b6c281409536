"""What a reconcile is asked to do, as the command line says it."""

from collections.abc import Collection
from pathlib import Path

from msgspec.structs import force_setattr

from engine.cluster.records import CONFIG_MAP_RECORDS, STATUS_RECORDS, RecordStore
from engine.errors import UsageError
from engine.lifecycle.max_starts import FEW, name_jobs
from engine.refs import JobKey
from engine.specdir.options import STDIN, SpecOptions
from engine.wellknown import DEFAULT_SOURCE, OBJECTS_SOURCE


class RunOptions(SpecOptions, frozen=True, kw_only=True):
    """A field for each option that a reconcile obeys. Times are seconds."""

    source: str
    concurrency: int = 16
    max_starts: int | None = None
    """How many new runs one reading may begin; None for what `limits.maxStarts` says."""
    prune: bool = False
    """Whether jobs whose spec is gone are removed."""
    max_removals: int | None = None
    yes: bool = False
    timeout: float | None = None
    """None waits for as long as it takes."""
    queue_timeout: float = 600.0
    wait: str = "finished"
    """`applied`, if it is enough that every job was started."""
    rerun_failed: bool = False
    """Whether jobs run again whose last run had failed, or was cancelled, before this one."""
    cancel_on_exit: bool = False
    """Whether what this invocation starts is cancelled where it ends before its jobs do."""
    prune_interval: float = 60.0
    poll: float | None = None
    """How often folders are polled; None for the system's events."""
    leader_elect: bool = False
    """Whether to share the source with other engines, rather than to end beside one."""
    lease_duration: float = 15.0
    lease_namespace: str = ""
    """Where the source's Lease is kept; "" for `home`."""

    def __post_init__(self) -> None:
        """Files and objects of one default source would share a Lease."""
        if self.from_cluster and self.source == DEFAULT_SOURCE:
            force_setattr(self, "source", OBJECTS_SOURCE)

    @property
    def records(self) -> RecordStore:
        """Where the jobs' records are kept."""
        return STATUS_RECORDS if self.from_cluster else CONFIG_MAP_RECORDS

    @property
    def reads_own_folders(self) -> bool:
        """Whether a missing spec means a removed job: whole folders, and a named source."""
        has_folders = all(path != STDIN and Path(path).is_dir() for path in self.paths)
        return self.source != DEFAULT_SOURCE and bool(self.paths) and has_folders

    def refuse_removals(self, gone: Collection[JobKey], jobs: int) -> UsageError | None:
        """Why --prune removes none of the `gone`; None if it may. The source has so many `jobs`.

        The wrong folder would remove every job of a source.
        """
        count, limit = len(gone), self.max_removals
        is_any = self.yes and limit is None
        if is_any or count <= (max(FEW, jobs // 2) if limit is None else limit):
            return None
        why = "more than half" if limit is None else f"--max-removals allows {limit:,}"
        return UsageError(
            f"--prune would remove {count:,} of the {jobs:,} jobs of source {self.source}, {why}:"
            f" none is removed; {name_jobs(sorted(gone))}",
            hint="are the folder and --source the right ones? If it is meant: "
            f"--max-removals {count}",
        )
