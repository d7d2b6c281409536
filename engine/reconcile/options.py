"""What a reconcile is asked to do, as the command line says it."""

import math
from pathlib import Path

from msgspec.structs import force_setattr

from engine.cluster.records import CONFIG_MAP_RECORDS, STATUS_RECORDS, RecordStore
from engine.lifecycle.brakes import MaxRemovals
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

    @property
    def removals(self) -> MaxRemovals:
        """How many jobs --prune may remove; without a number --yes is for any."""
        unlimited = self.yes and self.max_removals is None
        return MaxRemovals(math.inf if unlimited else self.max_removals)
