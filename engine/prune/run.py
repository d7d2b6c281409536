"""The TTL rule over the kinds and namespaces it is given, or over what was read already.

Memory doesn't grow with what stays: a page is forgotten once it is judged, and only so many deletes
wait at a time.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import heappush, heappushpop
from typing import Any

from engine.cluster import api
from engine.cluster.api import (
    CONFIG_MAPS,
    METADATA_LIST,
    PODS,
    Metadata,
    Resource,
    list_pages,
)
from engine.cluster.client import Client
from engine.cluster.discovery import find_resources
from engine.cluster.server import check_server_version
from engine.decide.prune.rule import (
    Delete,
    Invalid,
    Protected,
    Verdict,
    evaluate,
    evaluate_record,
    unnamed_ttls,
)
from engine.decide.record import Record
from engine.errors import ClusterError, EngineError, UsageError
from engine.prune.candidate import PruneCandidate
from engine.prune.delete import DeleteBudget, Deleter, error_text
from engine.prune.keep_record import keep_record
from engine.prune.options import PruneOptions
from engine.prune.outcome_keeper import OutcomeKeeper
from engine.prune.result import (
    KeepReason,
    OnEntry,
    PruneAction,
    PruneEntry,
    PruneResult,
    ResultCollector,
)
from engine.refs import JobKey, Ref, parse_pod_name, record_name
from engine.runtime.retry import TRIES, retry_transient
from engine.wellknown import JOB, MANAGED_BY, MANAGER

_WAITING_PER_WORKER = 4


def prune(
    client: Client,
    options: PruneOptions,
    on_entry: OnEntry,
    pods: Iterable[dict[str, Any]] | None = None,
    records: Iterable[Record] = (),
    on_page: Callable[[int], None] = lambda _count: None,
) -> PruneResult:
    """Delete what has outlived its TTL; `on_entry` is called for every object that carries one.

    With `pods`, as last seen, only these and `records` are looked at, and `on_entry` hears of none
    that simply stays: then there is no request where nothing has expired. What the pods own goes
    with them. A record goes only after the last pod of its job. `on_page` is called with the number
    of objects of each page that was listed, once they are judged.
    Guarantees: only what was read completely, judged expired and has not changed since is deleted.
    A list that fails in the middle ends its own kind and namespace, and is among the errors.
    Errors: UnsupportedServerError before anything else is asked, UsageError for a kind that isn't
    there, ClusterError when discovery fails.
    """
    if pods is not None:
        return _PruneRun(client, options, partial(_hear_changes, on_entry)).run_on(pods, records)
    retry_transient(lambda: check_server_version(client), tries=TRIES)
    resources = find_resources(client, options.kinds)
    for resource in resources:
        if not resource.namespaced and "" not in options.namespaces:
            hint = "prune them with --all-namespaces"
            raise UsageError(
                "objects of this kind are in no namespace", where=resource.plural, hint=hint
            )
    return _PruneRun(client, options, on_entry, on_page).run(resources)


def list_metadata(
    client: Client, resource: Resource, namespace: str, selector: str, fields: str = ""
) -> Iterator[list[Metadata]]:
    """The metadata of the objects, page by page.

    Errors: those of the API once a page has failed several times; ExpiredError at once.
    """
    retry = partial(retry_transient, tries=TRIES)
    path = resource.path(namespace)
    for page in list_pages(
        client, path, selector, fields=fields, accept=METADATA_LIST, retry=retry
    ):
        yield [item["metadata"] for item in page["items"]]


class _PruneRun:
    """The state of one run."""

    def __init__(
        self,
        client: Client,
        options: PruneOptions,
        on_entry: OnEntry,
        on_page: Callable[[int], None] = lambda _count: None,
    ) -> None:
        self._client = client
        self._on_page = on_page
        self._options = options
        self._collector = ResultCollector(on_entry)
        self._deleter = Deleter(
            client,
            OutcomeKeeper(client, options.logs_dir),
            DeleteBudget(options.max_deletes),
            options.dry_run,
            options.grace,
        )
        self._named = {*options.namespaces, *options.system_namespaces}
        self._slots = threading.BoundedSemaphore(options.concurrency * _WAITING_PER_WORKER)
        self._last_failed: frozenset[str] = frozenset()

    def run(self, resources: tuple[Resource, ...]) -> PruneResult:
        """Pods come first: what they own may go with them before it is looked at."""
        ordered = sorted(resources, key=lambda resource: resource.kind != "Pod")
        with ThreadPoolExecutor(self._options.concurrency, "prune") as pool:
            for namespace in dict.fromkeys(self._options.namespaces):
                for resource in ordered:
                    self._scan(pool, namespace, resource)
        return self._result()

    def run_on(self, pods: Iterable[dict[str, Any]], records: Iterable[Record]) -> PruneResult:
        """The same for pods and records that somebody has listed already."""
        listed = list(pods)
        failed = (p for p in listed if (p.get("status") or {}).get("phase") == "Failed")
        self._last_failed = newest_failed(
            (pod["metadata"] for pod in failed), self._options.keep_failed
        )
        with ThreadPoolExecutor(self._options.concurrency, "prune") as pool:
            for pod in listed:
                candidate = PruneCandidate(PODS, pod["metadata"], pod)
                if isinstance(self._evaluate(candidate), Delete | Invalid):
                    self._process(pool, candidate)
            for record in records:
                if isinstance(self._evaluate_record({"annotations": record.annotations}), Delete):
                    self._process_record(pool, record)
        return self._result()

    def _process_record(self, pool: ThreadPoolExecutor, record: Record) -> None:
        """Judge it once more, as it is now."""
        ref = Ref("ConfigMap", record.key.namespace, record_name(record.key.name))
        if self._deleter.budget.is_spent:
            words = "the limit of deletes is reached"
            entry = PruneEntry(ref, PruneAction.KEPT, words, KeepReason.OVER_BUDGET)
            self._collector.add(entry)
            return
        try:
            metadata = retry_transient(partial(api.get_metadata, self._client, ref), tries=TRIES)
        except EngineError as error:
            self._collector.add(PruneEntry(ref, PruneAction.FAILED, error_text(error)))
            return
        if metadata is not None:
            self._process(pool, PruneCandidate(CONFIG_MAPS, metadata))

    def _result(self) -> PruneResult:
        left = self._collector.result().kept.get(KeepReason.OVER_BUDGET, 0)
        if left:
            words = f"the limit of {self._options.max_deletes} deletes is reached"
            self._collector.add_warning(f"{words}, {left} more would go")
        return self._collector.result()

    def _scan(self, pool: ThreadPoolExecutor, namespace: str, resource: Resource) -> None:
        seen = 0
        try:
            if resource.kind == "Pod" and self._options.keep_failed > 0:
                self._last_failed = self._list_failed(namespace)
            for page in list_metadata(self._client, resource, namespace, self._options.selector):
                for metadata in page:
                    self._process(pool, PruneCandidate(resource, metadata))
                seen += len(page)
                self._on_page(len(page))
        except EngineError as error:
            where = f"{resource.plural} in {namespace or 'all namespaces'}"
            words = f"the list ended after {seen} objects: {error_text(error)}"
            self._collector.add_error(ClusterError(words, where=where, hint=error.hint))

    def _list_failed(self, namespace: str) -> frozenset[str]:
        selector = f"{MANAGED_BY}={MANAGER},{JOB}"
        pages = list_metadata(self._client, PODS, namespace, selector, "status.phase=Failed")
        return newest_failed((m for page in pages for m in page), self._options.keep_failed)

    def _process(self, pool: ThreadPoolExecutor, candidate: PruneCandidate) -> None:
        verdict = self._evaluate(candidate)
        system = candidate.system_namespace
        match verdict:
            case None:
                self._add_unjudged(candidate)
            case _ if system and system not in self._named:
                self._collector.add_system(system)
            case Delete(reason) if candidate.uid in self._last_failed:
                words = f"{reason}, one of the last failed"
                self._collector.add(candidate.kept(words, KeepReason.LAST_FAILED))
            case Delete(reason):
                self._slots.acquire()  # what waits is kept in memory
                work = pool.submit(self._delete, candidate, reason)
                work.add_done_callback(lambda _: self._slots.release())
            case _:
                self._collector.add(candidate.to_entry(verdict))

    def _add_unjudged(self, candidate: PruneCandidate) -> None:
        names = unnamed_ttls(candidate.metadata, self._options.annotations)
        if names:
            self._collector.add_unnamed(names)
        else:
            self._collector.add_without_ttl()

    def _evaluate(self, candidate: PruneCandidate) -> Verdict | None:
        if candidate.is_record:
            is_named = candidate.job_of_record is not None
            return self._evaluate_record(candidate.metadata) if is_named else None
        verdict = evaluate(
            candidate.metadata, self._client.now(), self._options.annotations, candidate.pod
        )
        if verdict is not None and candidate.is_root_certificate:
            return Protected("every namespace needs it")
        return verdict

    def _evaluate_record(self, metadata: Metadata) -> Verdict | None:
        return evaluate_record(metadata, self._client.now(), self._options.records_ttl)

    def _delete(self, candidate: PruneCandidate, reason: str) -> None:
        asks = candidate.is_record and not self._deleter.budget.is_spent
        entry = keep_record(self._client, candidate, reason) if asks else None
        entry = entry or self._deleter.delete(candidate, reason, self._evaluate)
        if entry is not None:
            self._collector.add(entry)


def _hear_changes(on_entry: OnEntry, entry: PruneEntry) -> None:
    if entry.action not in (PruneAction.KEPT, PruneAction.PROTECTED):
        on_entry(entry)


def newest_failed(failed: Iterable[Metadata], count: int) -> frozenset[str]:
    """UIDs of the `count` newest of each job; in memory are no more than those.

    A pod is its name's job's, whatever its labels say; one of another name is no job's.
    """
    if count <= 0:
        return frozenset()
    heaps: dict[JobKey, list[tuple[str, str]]] = {}
    for metadata in failed:
        parsed = parse_pod_name(metadata["name"])
        if parsed is None:
            continue
        heap = heaps.setdefault(JobKey(metadata["namespace"], parsed[0]), [])
        entry = (metadata["creationTimestamp"], metadata["uid"])
        if len(heap) < count:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)
    return frozenset(uid for heap in heaps.values() for _, uid in heap)
