"""What to prune, and how carefully."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.api.model import Config
from engine.wellknown import FOREIGN_TTLS

DEFAULT_KINDS = ("pods", "secrets", "configmaps")


class DryRun(StrEnum):
    """How far a run goes without deleting anything; the server may be asked whether it would."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """What `engine prune` was asked for, and the operator's limits."""

    namespaces: tuple[str, ...] = ("",)
    """Where to look; "" stands for all of them but those of Kubernetes' own, `kube-*`."""
    system_namespaces: tuple[str, ...] = ()
    """Those of `kube-*` that "" includes, too."""
    kinds: tuple[str, ...] = DEFAULT_KINDS
    """Plural names, with their group where they have one."""
    selector: str = ""
    """Labels of the objects that are looked at."""
    annotations: tuple[str, ...] = FOREIGN_TTLS
    """The TTLs that count beside the engine's own."""
    dry_run: DryRun = DryRun.NONE
    grace: int | None = None
    """Seconds for a pod to end; None for the pod's own."""
    concurrency: int = 8
    """Deletes under way at once."""
    max_deletes: int | None = None
    """The most that one run deletes."""
    keep_failed: int = 0
    """How many of the newest failed pods of every job stay."""
    records_ttl: float | None = None
    """Seconds for which the record of a job without a spec stays; None is for ever."""
    logs_dir: Path | None = None
    """Where the logs of pods are saved before they go."""


def ttl_options(
    config: Config, concurrency: int, max_deletes: int | None, logs_dir: Path | None
) -> PruneOptions:
    """What the operator's settings come to for the pods and records of a source."""
    return PruneOptions(
        concurrency=concurrency,
        max_deletes=max_deletes,
        keep_failed=config.prune.keep_failed,
        records_ttl=config.records.ttl,
        logs_dir=logs_dir,
    )
