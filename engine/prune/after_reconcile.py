"""What a reconcile prunes once its jobs are finished: jobs without a spec, and what has expired."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.api.model import Config
from engine.cluster.api import PODS
from engine.cluster.client import Client
from engine.cluster.records import RecordList
from engine.decide.record import Record
from engine.errors import EngineError
from engine.prune.elsewhere import pods_elsewhere, records_elsewhere
from engine.prune.mark_gone import MOST_MARKS, due_marks, write_marks
from engine.prune.options import DryRun, ttl_options
from engine.prune.removed import remove_gone
from engine.prune.result import (
    KeepReason,
    OnEntry,
    PruneAction,
    PruneEntry,
    PruneReport,
    PruneResult,
)
from engine.prune.run import prune
from engine.refs import JobKey

_GOES = (PruneAction.DELETED, PruneAction.WOULD_DELETE)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a reconcile has seen of its source."""

    source: str
    living: frozenset[JobKey]
    """The jobs that have a spec."""
    is_whole: bool
    """Whether there are no others for certain: only then can a spec be missed."""
    pods: Iterable[dict[str, Any]]
    """Of the source, in the namespaces of its jobs, as last seen."""
    records: Iterable[Record]
    """The same of records, of whichever source."""

    @property
    def namespaces(self) -> set[str]:
        """Those that have been looked at."""
        return {key.namespace for key in self.living}


def prune_after_reconcile(
    client: Client,
    config: Config,
    seen: Reconciled,
    removable: RecordList | None,
    *,
    concurrency: int,
    logs_dir: Path | None = None,
    dry_run: DryRun = DryRun.NONE,
    on_entry: OnEntry = lambda _entry: None,
) -> PruneReport:
    """Its pods and records in namespaces that no spec names any more are looked for if allowed.

    `removable` are the records of jobs without a spec, which are removed; None where they aren't
    to be: then they age. Logs are saved below `logs_dir` first. `on_entry` is called for each
    object as soon as it is settled.
    """
    entries: list[PruneEntry] = []

    def add(entry: PruneEntry) -> None:
        entries.append(entry)
        on_entry(entry)

    most = config.limits.max_deletes_per_pass
    removed = PruneResult()
    if removable is not None:
        removed = remove_gone(
            client, seen.source, removable, add,
            max_deletes=most, concurrency=concurrency, logs_dir=logs_dir, dry_run=dry_run,
        )  # fmt: skip
    taken = {entry.ref for entry in entries if entry.action in _GOES}
    if most is not None:
        most -= min(most, len(taken))
    pods, gone, warnings = list(seen.pods), list[Record](), list[str]()
    try:
        pods += pods_elsewhere(client, seen.source, seen.namespaces)
        if seen.is_whole and removable is None:
            gone = _records_of_gone(client, seen)
    except EngineError as error:
        warnings.append(f"pruning in namespaces that no spec names: {error}")
    marks = due_marks(gone, client.now())[:MOST_MARKS]
    if dry_run is DryRun.NONE:
        problems = write_marks(client, marks, concurrency)
        warnings += [f"marking records whose spec is gone: {problem}" for problem in problems]
    options = replace(ttl_options(config, concurrency, most, logs_dir), dry_run=dry_run)
    left_over = (pod for pod in pods if PODS.ref(pod["metadata"]) not in taken)
    expired = prune(client, options, add, left_over, gone)
    left = sum(result.kept.get(KeepReason.OVER_BUDGET, 0) for result in (removed, expired))
    if left:
        warnings.append(f"limits.maxDeletesPerPass is reached, {left} more would go")
    errors = (*_errors(removed), *expired.errors)
    return PruneReport(tuple(entries), tuple(warnings), errors, len(marks))


def _records_of_gone(client: Client, seen: Reconciled) -> list[Record]:
    own = [record for record in seen.records if record.source == seen.source]
    elsewhere = records_elsewhere(client, seen.source, seen.namespaces)
    return [record for record in (*own, *elsewhere) if record.key not in seen.living]


def _errors(removed: PruneResult) -> tuple[EngineError, ...]:
    failed = removed.actions.get(PruneAction.FAILED, 0)
    if not failed:
        return removed.errors
    words = f"{failed} of the removed specs' objects could not be deleted"
    return (*removed.errors, EngineError(words))
