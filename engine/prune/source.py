"""Prune what one source made: removed specs, expired pods, orphaned records.

Both ways of running a reconcile end up here. Pods and records were read already; only those in
namespaces that no spec names any more are asked for. What deletes is imported when it is needed.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.api.model import Config
from engine.cluster.api import CONFIG_MAPS, PODS, Resource, list_pages
from engine.cluster.client import Client
from engine.cluster.records import RecordList, list_records, write_record
from engine.durations import format_duration
from engine.errors import ConflictError, EngineError, ForbiddenError, NotFoundError
from engine.lifecycle.orphan import mark_orphaned
from engine.lifecycle.record import Record
from engine.lifecycle.state import foreign_label
from engine.prune.result import DryRun, OnEntry, PruneAction, PruneEntry, PruneResult
from engine.prune.rule import Delete, Invalid, evaluate, evaluate_record
from engine.refs import JobKey, Ref
from engine.runtime.retry import TRIES, retry_transient
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

if TYPE_CHECKING:
    from engine.prune.delete import DeleteBudget

_MAX_MARKS = 500
"""Of one pass: of thousands of orphaned records none is deleted soon, so the rest can wait."""
_MAX_TERMS = 50
"""Of a field selector."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a reconcile has seen of its source."""

    is_desired: Callable[[JobKey], bool]
    """Whether a job has a spec."""
    is_whole: bool
    """Whether a job without a spec is known to have none: only then its record is marked."""
    namespaces: Collection[str]
    """Those whose pods and records were read."""
    pods: Collection[dict[str, Any]]
    """Of the source, as last seen."""
    records: Collection[Record]
    """Of every source, as last seen."""


class SourcePruner:
    """The TTL rule over what one source made, pass by pass; used from one thread.

    Guarantees: after the first pass no request while nothing has expired, and no second try to mark
    the same version of a record.
    """

    def __init__(
        self,
        client: Client,
        source: str,
        *,
        ages: bool,
        concurrency: int,
        asks_first: bool = False,
        logs_dir: Path | None = None,
        dry_run: DryRun = DryRun.NONE,
    ) -> None:
        """`ages`: records of jobs without a spec are marked, rather than removed. `asks_first`: a
        list in all namespaces is sent only with the right to it, at the price of a request.
        """
        self._client = client
        self._source = source
        self._ages = ages
        self._asks_first = asks_first
        self._concurrency = concurrency
        self._logs_dir = logs_dir
        self._dry_run = dry_run
        self._unwatched: tuple[list[dict[str, Any]], list[Record]] | None = None
        """Pods and records in namespaces that no spec names any more, as last read."""
        self._tried: set[str] = set()
        """Versions of records that were to be marked."""

    def prune(
        self,
        config: Config,
        seen: SourceState,
        on_entry: OnEntry,
        budget: "DeleteBudget | None" = None,
        skip: Collection[Ref] = (),
    ) -> PruneResult:
        """Mark orphaned records, and delete what has expired, but for the pods to `skip`.

        `on_entry` is called for each object but those that simply stay. Without a `budget` this
        pass has the whole limit of deletes. Errors: none of the cluster's; they are in the result.
        """
        recorded = {uid for record in seen.records for uid in record.pod_uids}
        pods = [
            pod
            for pod in seen.pods
            if pod["metadata"]["uid"] in recorded or not foreign_label(pod, self._source)
        ]
        records, warnings = list[Record](), list[str]()
        try:
            other_pods, other_records = self._read_unwatched(config, seen)
            pods += other_pods
            if self._ages and seen.is_whole:
                records = [
                    record
                    for record in (*seen.records, *other_records)
                    if record.source == self._source and not seen.is_desired(record.key)
                ]
        except EngineError as error:
            warnings.append(f"pruning in namespaces that no spec names: {error}")
        marked, errors = self._mark(records)
        warnings += [f"marking records whose spec is gone: {error}" for error in errors]
        pods = [pod for pod in pods if PODS.ref(pod["metadata"]) not in skip]
        result = PruneResult()
        if budget is not None or self._verdicts(config, pods, records) & {Delete, Invalid}:
            from engine.prune.delete import DeleteBudget  # noqa: PLC0415 - rarely needed
            from engine.prune.run import PruneOptions, prune_listed  # noqa: PLC0415

            options = PruneOptions(
                concurrency=self._concurrency,
                logs_dir=self._logs_dir,
                dry_run=self._dry_run,
                records_ttl=config.records.ttl,
            )
            budget = budget or DeleteBudget(config.limits.max_deletes_per_pass)
            result = prune_listed(self._client, options, on_entry, budget, pods, records)
        return replace(
            result,
            marked=marked,
            notes=(_marked_note(marked, config.records.ttl),) if marked else (),
            warnings=(*warnings, *result.warnings),
        )

    def _verdicts(
        self, config: Config, pods: Iterable[dict[str, Any]], records: Iterable[Record]
    ) -> set[type]:
        """Kinds of the verdicts: on a pod by its age, so that none expires unnoticed."""
        now, ttl = self._client.now(), config.records.ttl
        marks = ({"annotations": record.annotations} for record in records)
        return {type(evaluate(pod["metadata"], now)) for pod in pods} | {
            type(evaluate_record(metadata, now, ttl)) for metadata in marks
        }

    def _read_unwatched(
        self, config: Config, seen: SourceState
    ) -> tuple[list[dict[str, Any]], list[Record]]:
        """Errors: those of the lists, once they have failed several times."""
        if self._unwatched is None or Delete in self._verdicts(config, *self._unwatched):
            outside = sorted(seen.namespaces)[:_MAX_TERMS]
            fields = ",".join(f"metadata.namespace!={name}" for name in outside)
            ages = self._ages and self._may_list(CONFIG_MAPS)
            listed = _list_records(self._client, self._source, fields) if ages else []
            may_list_pods = self._may_list(PODS)
            pods = _list_pods(self._client, self._source, fields) if may_list_pods else []
            self._unwatched = pods, [record for one in listed for record in one.items.values()]
        pods, records = self._unwatched
        return (
            [pod for pod in pods if pod["metadata"]["namespace"] not in seen.namespaces],
            [record for record in records if record.key.namespace not in seen.namespaces],
        )

    def _may_list(self, resource: Resource) -> bool:
        if not self._asks_first:
            return True
        from engine.cluster.discovery import may_list  # noqa: PLC0415 - an engine that stays asks

        return may_list(self._client, resource)

    def _mark(self, orphans: list[Record]) -> tuple[int, list[EngineError]]:
        """How many records were marked, and the errors."""
        now = self._client.now()
        due = [marked for record in orphans if (marked := mark_orphaned(record, now)) is not None]
        fresh = [record for record in due if record.version not in self._tried][:_MAX_MARKS]
        self._tried = {record.version for record in fresh} | (
            self._tried & {record.version for record in due}
        )
        if self._unwatched is not None:
            changed = {record.key: record for record in fresh}
            pods, records = self._unwatched
            self._unwatched = pods, [changed.get(record.key, record) for record in records]
        if not fresh or self._dry_run is not DryRun.NONE:
            return len(fresh), []
        return len(fresh), _write_marks(self._client, fresh, self._concurrency)


def _write_marks(client: Client, marked: Sequence[Record], concurrency: int) -> list[EngineError]:
    """Write records with their marks; the errors.

    Guarantees: a record that has changed since it was read is left as it is. A namespace where
    records may not be written is given up after one refusal per worker.
    """
    forbidden: dict[str, EngineError] = {}
    failed: list[EngineError] = []

    def write(record: Record) -> None:
        if record.key.namespace in forbidden:
            return
        try:
            write_record(client, record)
        except (ConflictError, NotFoundError):
            return
        except ForbiddenError as error:
            forbidden[record.key.namespace] = error
        except EngineError as error:
            failed.append(error)

    with ThreadPoolExecutor(concurrency, "mark") as pool:
        list(pool.map(write, marked))
    return [*forbidden.values(), *failed]


def prune_after_reconcile(
    client: Client,
    config: Config,
    source: str,
    seen: SourceState,
    removable: RecordList | None,
    *,
    concurrency: int,
    logs_dir: Path | None = None,
    dry_run: DryRun = DryRun.NONE,
    on_entry: OnEntry = lambda _entry: None,
) -> PruneResult:
    """Remove the jobs without a spec whose records are `removable`, then prune what has expired.

    `removable` is None where no job is removed: then their records age. A failed removal is an
    error, since it was asked for. An object that the TTL rule could not delete is only an entry.
    """
    entries: list[PruneEntry] = []

    def add(entry: PruneEntry) -> None:
        entries.append(entry)
        on_entry(entry)

    budget, errors = None, tuple[EngineError, ...]()
    if removable is not None:
        from engine.prune.delete import DeleteBudget  # noqa: PLC0415 - only with --prune
        from engine.prune.removed import JobRemover  # noqa: PLC0415

        budget = DeleteBudget(config.limits.max_deletes_per_pass)
        remover = JobRemover(client, source, add, budget, logs_dir, dry_run)
        remover.remove_all(removable, concurrency)
        failed = sum(entry.action is PruneAction.FAILED for entry in entries)
        if failed:
            words = f"{failed} of the removed specs' objects could not be deleted"
            errors = (EngineError(words),)
    gone = (PruneAction.DELETED, PruneAction.WOULD_DELETE)
    taken = {entry.ref for entry in entries if entry.action in gone}
    pruner = SourcePruner(
        client,
        source,
        ages=removable is None,
        concurrency=concurrency,
        logs_dir=logs_dir,
        dry_run=dry_run,
    )
    expired = pruner.prune(config, seen, add, budget, taken)
    errors = (*errors, *expired.errors)
    return replace(expired, entries=tuple(entries), counts={}, errors=errors)


def find_gone(
    client: Client, source: str, living: Collection[JobKey], namespaces: Iterable[str]
) -> RecordList:
    """Records of the source's jobs that are not among the `living`, in the order of their names.

    `namespaces` are where to look for them if the engine may not look everywhere.
    Errors: those of the list, once it has failed several times.
    """
    gone = RecordList()
    for records in _list_records(client, source, "", namespaces):
        gone.items.update((k, r) for k, r in sorted(records.items.items()) if k not in living)
        gone.invalid.update((k, e) for k, e in sorted(records.invalid.items()) if k not in living)
    return gone


def _list_pods(client: Client, source: str, fields: str) -> list[dict[str, Any]]:
    """None without the right to list pods everywhere."""
    selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={source}"
    retry = partial(retry_transient, tries=TRIES)
    try:
        pages = list(list_pages(client, PODS.path(""), selector, fields=fields, retry=retry))
    except ForbiddenError:
        return []
    return [pod for page in pages for pod in page["items"]]


def _list_records(
    client: Client, source: str, fields: str, namespaces: Iterable[str] = ()
) -> list[RecordList]:
    """The source's records everywhere; those of `namespaces` without the right to that."""

    def listed(namespace: str) -> RecordList:
        ask = partial(list_records, client, namespace, f"{SOURCE}={source}", fields)
        return retry_transient(ask, tries=TRIES)

    try:
        return [listed("")]
    except ForbiddenError:
        return [listed(namespace) for namespace in namespaces]


def _marked_note(marked: int, ttl: float | None) -> str:
    jobs = (
        "1 job has no spec any more: its record stays"
        if marked == 1
        else (f"{marked} jobs have no spec any more: their records stay")
    )
    return jobs if ttl is None else f"{jobs} for {format_duration(ttl)}"
