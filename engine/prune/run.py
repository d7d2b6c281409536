"""Carry out the TTL rule over kinds and namespaces, or over objects that were read already.

Memory doesn't grow with the objects that stay: a page is forgotten once it is judged, and only so
many deletes wait at a time.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.cluster.api import CONFIG_MAPS, METADATA_LIST, PODS, Metadata, Resource, list_pages
from engine.cluster.client import Client
from engine.cluster.discovery import check_server_version, find_resources
from engine.cluster.records import parse_record
from engine.errors import BrokenRecordError, ClusterError, EngineError, UsageError
from engine.lifecycle.record import Record
from engine.prune.candidate import PruneCandidate, record_candidate
from engine.prune.delete import DeleteBudget, Deleter, error_text
from engine.prune.result import (
    DryRun,
    OnEntry,
    PruneAction,
    PruneEntry,
    PruneResult,
)
from engine.prune.rule import (
    Delete,
    Invalid,
    Protected,
    Verdict,
    evaluate,
    evaluate_record,
    unnamed_ttls,
)
from engine.refs import Ref, pod_name
from engine.runtime.retry import TRIES, retry_transient
from engine.wellknown import FOREIGN_TTLS, JOB

_WAITING_PER_WORKER = 4
_ROOT_CERTIFICATE = "kube-root-ca.crt"


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """What `engine prune` was asked for, and the operator's limits."""

    namespaces: tuple[str, ...] = ("",)
    """Where to look; "" means all namespaces but `kube-*`."""
    system_namespaces: tuple[str, ...] = ()
    """Those of `kube-*` that "" includes, too."""
    kinds: tuple[str, ...] = ("pods", "secrets", "configmaps")
    """Plural names, with their group where they have one."""
    selector: str = ""
    annotations: tuple[str, ...] = FOREIGN_TTLS
    """The TTLs that count beside the engine's own."""
    dry_run: DryRun = DryRun.NONE
    concurrency: int = 8
    """Deletes under way at once."""
    max_deletes: int | None = None
    records_ttl: float | None = None
    """Seconds for which an orphaned record stays; None is for ever."""
    logs_dir: Path | None = None
    """Where the logs of pods are saved before the pods are deleted."""


def prune(client: Client, options: PruneOptions, on_entry: OnEntry) -> PruneResult:
    """Delete what has outlived its TTL; `on_entry` is called for every object that carries one.

    Pods come first: their dependents go with them.
    Guarantees: only an object that was read completely, judged expired and has not changed since is
    deleted. A list that fails in the middle ends its own kind and namespace, and is among the
    errors.
    Errors: ClusterError before any other request, UsageError for a kind that doesn't
    exist, ClusterError when discovery fails.
    """
    retry_transient(lambda: check_server_version(client), tries=TRIES)
    resources = find_resources(client, options.kinds)
    for resource in resources:
        if not resource.namespaced and "" not in options.namespaces:
            hint = "prune them with --all-namespaces"
            raise UsageError(
                "objects of this kind are in no namespace", where=resource.plural, hint=hint
            )
    run = _PruneRun(client, options, on_entry, DeleteBudget(options.max_deletes))
    return run.scan(sorted(resources, key=lambda resource: resource.kind != "Pod"))


def prune_listed(
    client: Client,
    options: PruneOptions,
    on_entry: OnEntry,
    budget: DeleteBudget,
    pods: Iterable[dict[str, Any]],
    records: Iterable[Record],
) -> PruneResult:
    """The same for pods and records that were listed already: no request while none has expired.

    A record is deleted only after the last pod of its job. `on_entry` is called for no object that
    simply stays.
    """

    def add(entry: PruneEntry) -> None:
        if entry.action not in (PruneAction.KEPT, PruneAction.PROTECTED):
            on_entry(entry)

    return _PruneRun(client, options, add, budget).judge_listed([*pods], records)


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


class ResultCollector:
    """Counts entries and hands them on, so that memory doesn't grow with them.

    `add` is safe to use from several threads.
    """

    def __init__(self, on_entry: OnEntry) -> None:
        self.errors: list[EngineError] = []
        self.unnamed: Counter[str] = Counter()
        """Objects that were left alone, by the words that say why."""
        self._on_entry = on_entry
        self._lock = threading.Lock()
        self._counts: Counter[PruneAction] = Counter()

    def add(self, entry: PruneEntry) -> None:
        """Count one object's end, and hand it on."""
        with self._lock:
            self._counts[entry.action] += 1
            self._on_entry(entry)

    def result(self, warning: str) -> PruneResult:
        """The counts so far, and `warning` unless it is empty."""
        with self._lock:
            return PruneResult(
                counts=dict(self._counts),
                notes=(_unnamed_note(self.unnamed),) if self.unnamed else (),
                warnings=(warning,) if warning else (),
                errors=tuple(self.errors),
            )


def _unnamed_note(unnamed: Mapping[str, int]) -> str:
    found = ", ".join(f"{count} {words}" for words, count in sorted(unnamed.items()))
    return f"left alone, because neither --annotation nor -n names them: {found}"


class _PruneRun:
    """The state of one run."""

    def __init__(
        self, client: Client, options: PruneOptions, on_entry: OnEntry, budget: DeleteBudget
    ) -> None:
        self._client = client
        self._options = options
        self._collector = ResultCollector(on_entry)
        self._budget = budget
        self._deleter = Deleter(client, budget, dry_run=options.dry_run, logs_dir=options.logs_dir)
        self._named = {*options.namespaces, *options.system_namespaces}
        self._slots = threading.BoundedSemaphore(options.concurrency * _WAITING_PER_WORKER)

    def scan(self, resources: Iterable[Resource]) -> PruneResult:
        with ThreadPoolExecutor(self._options.concurrency, "prune") as pool:
            for namespace in dict.fromkeys(self._options.namespaces):
                for resource in resources:
                    self._scan(pool, namespace, resource)
        return self._collector.result(self._budget.warning)

    def judge_listed(self, pods: list[dict[str, Any]], records: Iterable[Record]) -> PruneResult:
        found = [PruneCandidate(PODS, pod["metadata"], pod) for pod in pods]
        with ThreadPoolExecutor(self._options.concurrency, "prune") as pool:
            for candidate in (*found, *map(record_candidate, records)):
                verdict = self._evaluate(candidate)
                if isinstance(verdict, Delete | Invalid):
                    self._settle(pool, candidate, verdict)
        return self._collector.result(self._budget.warning)

    def _scan(self, pool: ThreadPoolExecutor, namespace: str, resource: Resource) -> None:
        seen = 0
        try:
            for page in list_metadata(self._client, resource, namespace, self._options.selector):
                for metadata in page:
                    candidate = PruneCandidate(resource, metadata)
                    self._settle(pool, candidate, self._evaluate(candidate))
                seen += len(page)
        except EngineError as error:
            where = f"{resource.plural} in {namespace or 'all namespaces'}"
            words = f"the list ended after {seen} objects: {error_text(error)}"
            self._collector.errors.append(ClusterError(words, where=where, hint=error.hint))

    def _settle(
        self, pool: ThreadPoolExecutor, candidate: PruneCandidate, verdict: Verdict | None
    ) -> None:
        """Have an expired object deleted; report or count any other."""
        unnamed, system = self._collector.unnamed, candidate.system_namespace
        match verdict:
            case None:
                names = unnamed_ttls(candidate.metadata, self._options.annotations)
                if names:
                    unnamed[f"with {' and '.join(sorted(names))}"] += 1
            case _ if system and system not in self._named:
                unnamed[f"in {system}"] += 1
            case Delete(reason):
                self._slots.acquire()  # an object that waits is kept in memory
                work = pool.submit(self._delete, candidate, reason)
                work.add_done_callback(lambda _: self._slots.release())
            case _:
                self._collector.add(candidate.to_entry(verdict))

    def _evaluate(self, candidate: PruneCandidate) -> Verdict | None:
        metadata, now, options = candidate.metadata, self._client.now(), self._options
        if candidate.is_record:
            is_named = candidate.job_of_record is not None
            return evaluate_record(metadata, now, options.records_ttl) if is_named else None
        verdict = evaluate(metadata, now, options.annotations, candidate.pod)
        if verdict is not None and candidate.ref.name == _ROOT_CERTIFICATE:
            return Protected("every namespace needs it")
        return verdict

    def _delete(self, candidate: PruneCandidate, reason: str) -> None:
        is_guarded = candidate.is_record and not self._budget.is_spent
        entry = _guard_record(self._client, candidate, reason) if is_guarded else None
        entry = entry or self._deleter.delete(candidate, reason, self._evaluate)
        if entry is not None:
            self._collector.add(entry)


def _guard_record(client: Client, candidate: PruneCandidate, reason: str) -> PruneEntry | None:
    """The entry of a record that stays; None if nothing else of its job is left.

    Pods are looked for by their label and, because labels can be changed, the last one by its name.
    That takes the right to list, and no other. Errors: none; they are the entry's reason.
    """
    key = candidate.job_of_record
    if key is None:
        return None
    find = partial(_find, client, key.namespace)
    try:
        pods = [*find(PODS, selector=f"{JOB}={key.name}")]
        for item in find(CONFIG_MAPS, fields=f"metadata.name={candidate.ref.name}"):
            last = _last_pod(parse_record(item))
            pods += find(PODS, fields=f"metadata.name={last}") if last else ()
    except BrokenRecordError as error:
        words = f"{reason}, but it can't be read: {error.cause}"
        return candidate.entry(PruneAction.INVALID, words)
    except EngineError as error:
        return candidate.entry(PruneAction.FAILED, error_text(error))
    if not pods:
        return None
    left = Ref("Pod", key.namespace, pods[0]["metadata"]["name"])
    return candidate.entry(PruneAction.KEPT, f"{reason}; {left} is still there")


def _find(
    client: Client, namespace: str, resource: Resource, *, selector: str = "", fields: str = ""
) -> Iterator[dict[str, Any]]:
    retry = partial(retry_transient, tries=TRIES)
    path = resource.path(namespace)
    for page in list_pages(client, path, selector, fields=fields, retry=retry):
        yield from page["items"]


def _last_pod(record: Record) -> str:
    """Name of the pod of the last attempt, of this run or else of the one before; "" for none."""
    if record.last is not None:
        return record.last.pod
    if not record.history:
        return ""
    past = record.history[0]
    return pod_name(record.key.name, past.run, past.last_number)
