"""Prune what one source made: removed specs, expired pods, orphaned records.

Both ways of running a reconcile end up here. Pods and records were read already; only those in
namespaces that no spec names any more are asked for. What deletes is imported when it is needed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from engine.api.model import Config
from engine.cluster.api import CONFIG_MAPS, PODS, Resource, list_all
from engine.cluster.client import Client
from engine.cluster.discovery import may_list
from engine.cluster.records import CONFIG_MAP_RECORDS, RecordList, read_record, write_record
from engine.durations import format_duration
from engine.errors import (
    BrokenRecordError,
    ConflictError,
    EngineError,
    ForbiddenError,
    NotFoundError,
)
from engine.lifecycle.orphan import living_or_due, mark_orphaned
from engine.lifecycle.ownership import Marked, Recorded
from engine.lifecycle.record import Record, mask_record
from engine.lifecycle.state import foreign_label, slim_pod
from engine.prune.result import DryRun, PruneAction, PruneEntry, PruneResult
from engine.prune.rule import Verdict, evaluate, evaluate_record
from engine.refs import JobKey
from engine.runtime.retry import TRIES, retry_transient
from engine.telemetry.redact import REDACTOR
from engine.wellknown import MANAGED_BY, MANAGER, ORPHANED_SINCE, SOURCE

if TYPE_CHECKING:
    from engine.prune.candidate import PruneCandidate
    from engine.prune.delete import Deleter

_MAX_MARKS = 500
"""Of one pass: of thousands of orphaned records none is deleted soon, so the rest can wait."""
_MAX_TERMS = 50
"""Of a field selector."""


class SourceState(Struct, frozen=True):
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


def missed(records: Iterable[Record], source: str, living: Collection[JobKey]) -> dict[JobKey, str]:
    """The source's jobs that have no spec since just now, and the digests of their fields."""
    return {
        record.key: record.spec_fields
        for record in records
        if record.source == source
        and record.key not in living
        and ORPHANED_SINCE not in record.annotations
    }


class GoneJobs(Struct, frozen=True):
    """Jobs of a source that have a record, and no spec any more."""

    records: RecordList
    jobs: int
    """How many jobs the source has, by their records: these, and those that have a spec."""


class SourcePruner(Struct, kw_only=True):
    """What one source made, pass by pass; used from one thread.

    Guarantees: after the first pass of a day no request while nothing has expired, and no second
    try to mark the same version of a record, unless another try can help.
    """

    client: Client
    source: str
    ages: bool
    """Whether records of jobs without a spec are marked, rather than removed."""
    concurrency: int
    dry_run: DryRun = DryRun.NONE
    leads: Callable[[], bool] | None = None
    """Whether an engine that stays may still delete; None for one that doesn't stay."""
    _pods: list[dict[str, Any]] = []
    """Those in namespaces that no spec names any more, as last read."""
    _day: date | None = None
    """When that was: with each day other marked records may be due. None to read them again."""
    _records: dict[JobKey, Record] = {}
    """The same of records."""
    _tried: set[str] = set()
    """Versions of records that were to be marked."""
    _foreign: set[str] = set()
    """UIDs of pods that were found to be labelled, not ours."""

    def prune(self, config: Config, seen: SourceState, gone: GoneJobs | None = None) -> PruneResult:
        """Remove the jobs that are `gone`, mark orphans, delete what has expired.

        A failed removal is an error, since it was asked for. An object that the TTL rule could not
        delete is only an entry. Errors: none of the cluster's; they are in the result.
        """
        entries, warnings = list[PruneEntry](), list[str]()
        errors: tuple[EngineError, ...] = ()
        marked, now, ttl = 0, self.client.now(), config.records.ttl
        add, deleter = entries.append, None
        if gone is not None:
            from engine.prune.removed import JobRemover  # noqa: PLC0415 - only with --prune

            deleter = self._deleter(config)
            JobRemover(deleter, self.source, add).remove_all(gone.records, self.concurrency)
            failed = sum(entry.action is PruneAction.FAILED for entry in entries)
            words = f"{failed} of the removed specs' objects could not be deleted"
            errors = (EngineError(words),) if failed else ()
        try:
            if self._day != now.date():
                self._read_unwatched(seen.namespaces, now, ttl)
        except EngineError as error:
            warnings.append(f"pruning in namespaces that no spec names: {error}")
        orphans = self._orphans(seen) if self.ages and seen.is_whole else []
        if orphans:
            marked, refused = self._mark(orphans, now)
            warnings += [f"marking records whose spec is gone: {error}" for error in refused]
        taken = {entry.ref for entry in entries}
        pods = {pod["metadata"]["uid"]: pod for pod in (*self._pods, *seen.pods)}
        expired = [
            pod
            for pod in pods.values()
            if _is_due(evaluate(pod["metadata"], now)) and PODS.ref(pod["metadata"]) not in taken
        ]
        outdated = [record for record in orphans if _is_due(_evaluate_record(record, now, ttl))]
        if expired or outdated:
            from engine.prune.candidate import record_candidate  # noqa: PLC0415
            from engine.prune.run import PruneOptions, TtlPruner  # noqa: PLC0415 - rarely needed

            deleter = deleter or self._deleter(config)
            known = self._records | {record.key: record for record in seen.records}
            found = [own for pod in expired if (own := self._own(pod, known, deleter.foreign))]
            self._foreign = (self._foreign & pods.keys()) | deleter.foreign
            found += [record_candidate(record, Marked((ORPHANED_SINCE,))) for record in outdated]
            options = PruneOptions(concurrency=self.concurrency, records_ttl=ttl)
            TtlPruner(deleter, options, add).judge(found)
            unwatched = {pod["metadata"]["uid"] for pod in self._pods}
            if outdated or any(pod["metadata"]["uid"] in unwatched for pod in expired):
                self._day = None  # what was read is old by the next pass
        if deleter is not None:
            warnings += deleter.warnings
        words = "1 job has no spec any more; its record is kept"
        if marked > 1:
            words = f"{marked} jobs have no spec any more; their records are kept"
        kept = "for ever" if ttl is None else f"for {format_duration(ttl)}"
        note = f"source {self.source}: {words} {kept}"
        return PruneResult(
            tuple(entries),
            marked=marked,
            notes=(*((note,) if marked else ()), *(deleter.notes if deleter else ())),
            warnings=tuple(warnings),
            errors=errors,
        )

    def _own(
        self, pod: dict[str, Any], known: Mapping[JobKey, Record], foreign: set[str]
    ) -> "PruneCandidate | None":
        """The pod with what proves that the source made it; `foreign` gets what nothing proves.

        A pod is in a record before it runs: one that is in none will never be.
        """
        from engine.prune.candidate import PruneCandidate, gated_candidate  # noqa: PLC0415

        uid, candidate = pod["metadata"]["uid"], gated_candidate(pod)
        is_labelled, key = not foreign_label(pod, self.source), candidate.job
        if uid in self._foreign or (is_labelled and candidate.is_proven):
            return None if uid in self._foreign else candidate
        record = known.get(key) if key is not None else None
        try:
            if key is not None and (record is None or uid not in record.pods):
                record = read_record(self.client, key)
        except BrokenRecordError:
            record = None
        except EngineError:
            return None
        if record is not None and record.source == self.source and uid in record.pods:
            return PruneCandidate(PODS, pod["metadata"], Recorded(record), pod)
        if is_labelled:
            foreign.add(uid)
        return None

    def _deleter(self, config: Config) -> "Deleter":
        """With the whole limit of deletes of a pass."""
        from engine.prune.delete import Deleter  # noqa: PLC0415 - rarely needed

        limit = config.limits.max_deletes_per_pass
        return Deleter(self.client, limit, self.dry_run, leads=self.leads)

    def _read_unwatched(
        self, namespaces: Collection[str], now: datetime, ttl: float | None
    ) -> None:
        """Errors: those of the lists, once they have failed several times."""
        outside = sorted(namespaces)[:_MAX_TERMS]
        fields = ",".join(map("metadata.namespace!={}".format, outside))
        lists_records = self.ages and self._may_list(CONFIG_MAPS)
        picked = ",".join(filter(None, (f"{SOURCE}={self.source}", living_or_due(now, ttl))))
        records = _list_records(self.client, picked, fields) if lists_records else ()
        selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={self.source}"
        ask = partial(list_all, self.client, PODS.path(""), selector, fields, keep=slim_pod)
        try:
            pages = retry_transient(ask, tries=TRIES) if self._may_list(PODS) else []
        except ForbiddenError:  # only where the specs are
            pages = []
        self._pods, self._day = [pod for page in pages for pod in page["items"]], now.date()
        self._records = dict(chain.from_iterable(one.items.items() for one in records))

    def _may_list(self, resource: Resource) -> bool:
        """An engine that stays asks first: a refused list is in the server's audit log."""
        return self.leads is None or may_list(self.client, resource)

    def _orphans(self, seen: SourceState) -> list[Record]:
        known = self._records | {record.key: record for record in seen.records}
        return [
            record
            for key, record in known.items()
            if record.source == self.source and not seen.is_desired(key)
        ]

    def _mark(self, orphans: list[Record], now: datetime) -> tuple[int, Iterable[EngineError]]:
        """How many records were marked, and an error for each namespace that refuses it.

        Guarantees: a record that has changed since it was read is left as it is.
        """
        due = [marked for record in orphans if (marked := mark_orphaned(record, now)) is not None]
        fresh = [record for record in due if record.version not in self._tried][:_MAX_MARKS]
        written, errors = list[Record](), dict[str, EngineError]()

        def write(record: Record) -> None:
            namespace = record.key.namespace
            try:
                if namespace not in errors:
                    masked = mask_record(record, REDACTOR.of(record.key))
                    written.append(write_record(self.client, masked))
            except (ConflictError, NotFoundError):
                self._day = None  # what was read is old
            except EngineError as error:
                errors[namespace] = error

        if self.dry_run is not DryRun.NONE:
            return len(fresh), ()
        if fresh:
            with ThreadPoolExecutor(self.concurrency, "mark") as pool:
                list(pool.map(write, fresh))
        self._records.update({record.key: record for record in written})
        again = {namespace for namespace, error in errors.items() if error.retryable}
        self._tried &= {record.version for record in due}
        self._tried |= {one.version for one in fresh if one.key.namespace not in again}
        return len(written), errors.values()


def find_gone(
    client: Client, source: str, living: Collection[JobKey], namespaces: Iterable[str]
) -> GoneJobs:
    """The source's jobs that are not among the `living`, in the order of their names.

    `namespaces` are where to look for them if the engine may not look everywhere.
    Errors: those of the list, once it has failed several times.
    """
    gone, jobs = RecordList(), 0
    for records in _list_records(client, f"{SOURCE}={source}", "", namespaces):
        gone.items.update((k, r) for k, r in sorted(records.items.items()) if k not in living)
        gone.invalid.update((k, e) for k, e in sorted(records.invalid.items()) if k not in living)
        jobs += len(records.items) + len(records.invalid)
    return GoneJobs(gone, jobs)


def _list_records(
    client: Client, selector: str, fields: str, namespaces: Iterable[str] = ()
) -> list[RecordList]:
    """Records everywhere; those of `namespaces` without the right to that."""

    def listed(namespace: str) -> RecordList:
        ask = partial(CONFIG_MAP_RECORDS.list, client, namespace, selector, fields)
        return retry_transient(ask, tries=TRIES)

    try:
        return [listed("")]
    except ForbiddenError:
        return [listed(namespace) for namespace in namespaces]


def _evaluate_record(record: Record, now: datetime, ttl: float | None) -> Verdict | None:
    return evaluate_record({"annotations": record.annotations}, now, ttl)


def _is_due(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict[0] in (PruneAction.DELETED, PruneAction.INVALID)
