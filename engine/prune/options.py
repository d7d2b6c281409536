"""What to prune, and how carefully."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.decide.prune import FOREIGN_TTLS

DEFAULT_KINDS = ("pods", "secrets", "configmaps")


class DryRun(StrEnum):
    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """Times are seconds. "" among the namespaces stands for all of them.

    `annotations` are the TTLs that count beside the engine's own. `events` is how many Events a
    run may write at most: an Event costs as much as a delete. `keep_failed` is per job.
    """

    namespaces: tuple[str, ...] = ("",)
    kinds: tuple[str, ...] = DEFAULT_KINDS
    selector: str = ""
    annotations: tuple[str, ...] = FOREIGN_TTLS
    dry_run: DryRun = DryRun.NONE
    grace: int | None = None
    concurrency: int = 8
    max_deletes: int | None = None
    keep_failed: int = 0
    orphan_grace: float = 600.0
    logs_dir: Path | None = None
    events: int = 25
