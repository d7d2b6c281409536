"""Carry out the TTL rule over kinds and namespaces, or over objects that were read already.

Memory doesn't grow with the objects that stay: a page is forgotten once it is judged, and only so
many deletes wait at a time.
"""

import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, field

from engine.cluster.api import PODS, Resource
from engine.cluster.discovery import check_server_version, find_resources
from engine.cluster.records import CONFIG_MAP_RECORDS, read_record
from engine.errors import BrokenRecordError, ClusterError, EngineError, UsageError
from engine.lifecycle.ownership import Marked
from engine.prune.candidate import PruneCandidate, list_candidates, objects_of
from engine.prune.delete import Deleter, error_text
from engine.prune.result import OnEntry, PruneAction, PruneEntry, PruneResult
from engine.prune.rule import Verdict, evaluate, evaluate_record, unnamed_ttls
from engine.runtime.retry import TRIES, retry_transient
from engine.wellknown import EXPIRES_AT, FOREIGN_TTLS, ORPHANED_SINCE, TTL

_WAITING_PER_WORKER = 4
_ROOT_CERTIFICATE = "kube-root-ca.crt"


class PruneOptions(Struct, frozen=True):
    """What `engine prune` was asked for, and the operator's limits."""

    namespaces: tuple[str, ...] = ("",)
    """Where to look; "" means all namespaces but those of `kube-*` that aren't named beside it."""
    kinds: tuple[str, ...] = ("pods", "secrets", "configmaps")
    """Plural names, with their group where they have one."""
    selector: str = ""
    annotations: tuple[str, ...] = FOREIGN_TTLS
    """The TTLs that count beside the engine's own."""
    concurrency: int = 8
    """Deletes under way at once."""
    records_ttl: float | None = None
    """Seconds for which an orphaned record stays; None is for ever."""


def prune(deleter: Deleter, options: PruneOptions, on_entry: OnEntry) -> PruneResult:
    """Delete what has outlived its TTL; `on_entry` is called for every object that carries one.

    Pods come first: their dependents go with them.
    Guarantees: only an object that was read completely, judged expired and has not changed since is
    deleted. A list that fails in the middle ends its own kind and namespace, and is among the
    errors.
    Errors: ClusterError before any other request, UsageError for a kind that doesn't
    exist, ClusterError when discovery fails.
    """
    retry_transient(lambda: check_server_version(deleter.client), tries=TRIES)
    resources = find_resources(deleter.client, options.kinds)
    for resource in resources:
        if not resource.namespaced and "" not in options.namespaces:
            hint = "prune them with --all-namespaces"
            raise UsageError(
                "objects of this kind are in no namespace", where=resource.plural, hint=hint
            )
    run = TtlPruner(deleter, options, on_entry)
    return run.scan(sorted(resources, key=lambda resource: resource.kind != "Pod"))


class TtlPruner(Struct):
    """The TTL rule in one run."""

    deleter: Deleter
    options: PruneOptions
    on_entry: OnEntry
    _silent: tuple[PruneAction, ...] = ()
    _errors: list[EngineError] = []
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _counts: Counter[PruneAction] = field(default_factory=Counter)
    _unnamed: Counter[str] = field(default_factory=Counter)
    """Objects that were left alone, by the words that say why."""
    _slots: threading.BoundedSemaphore = field(default_factory=threading.BoundedSemaphore)

    def __post_init__(self) -> None:
        self._slots = threading.BoundedSemaphore(self.options.concurrency * _WAITING_PER_WORKER)

    def scan(self, resources: Iterable[Resource]) -> PruneResult:
        """Judge every object that can be listed. Errors: none; they are in the result."""
        named = dict.fromkeys(self.options.namespaces)
        with ThreadPoolExecutor(self.options.concurrency, "prune") as pool:
            for namespace in [""] if "" in named else named:
                for resource in resources:
                    self._scan(pool, namespace, resource)
        found = ", ".join(f"{count} {words}" for words, count in sorted(self._unnamed.items()))
        note = f"left alone, because neither --annotation nor -n names them: {found}"
        return PruneResult(
            counts=self._counts,
            notes=(note,) if found else (),
            warnings=self.deleter.warnings,
            errors=tuple(self._errors),
        )

    def judge(self, candidates: Iterable[PruneCandidate]) -> None:
        """The same for objects that were listed already; those that simply stay aren't reported.

        A record goes after its job's last pod.
        """
        self._silent = (PruneAction.KEPT, PruneAction.PROTECTED)
        with ThreadPoolExecutor(self.options.concurrency, "prune") as pool:
            for candidate in candidates:
                self._settle(pool, candidate, self._evaluate(candidate))

    def _scan(self, pool: ThreadPoolExecutor, namespace: str, resource: Resource) -> None:
        options, seen = self.options, 0
        marks = (TTL, EXPIRES_AT, ORPHANED_SINCE, *options.annotations)
        try:
            listed = list_candidates(
                self.deleter.client, resource, namespace, options.selector, Marked(marks)
            )
            for candidate in listed:
                seen += 1
                system, verdict = candidate.system_namespace, self._evaluate(candidate)
                if verdict is None:
                    names = unnamed_ttls(candidate.metadata, options.annotations)
                    if names:
                        self._unnamed[f"with {' and '.join(sorted(names))}"] += 1
                elif system and system not in options.namespaces:
                    self._unnamed[f"in {system}"] += 1
                else:
                    self._settle(pool, candidate, verdict)
        except EngineError as error:
            where = f"{resource.plural} in {namespace or 'all namespaces'}"
            words = f"the list ended after {seen} objects: {error_text(error)}"
            self._errors.append(ClusterError(words, where=where, hint=error.hint))

    def _settle(
        self, pool: ThreadPoolExecutor, candidate: PruneCandidate, verdict: Verdict | None
    ) -> None:
        """Have an expired object deleted, report any other."""
        if verdict is None:
            return
        action, reason = verdict
        if action is PruneAction.DELETED:
            self._slots.acquire()  # an object that waits is kept in memory
            pool.submit(self._delete, candidate, reason)
        else:
            self._add(candidate.entry(action, reason))

    def _evaluate(self, candidate: PruneCandidate) -> Verdict | None:
        metadata, now, options = candidate.metadata, self.deleter.client.now(), self.options
        if candidate.is_record:
            is_named = CONFIG_MAP_RECORDS.key_of({"metadata": metadata}) is not None
            return evaluate_record(metadata, now, options.records_ttl) if is_named else None
        verdict = evaluate(metadata, now, options.annotations, candidate.pod)
        if verdict is not None and candidate.ref.name == _ROOT_CERTIFICATE:
            return PruneAction.PROTECTED, "every namespace needs it"
        return verdict

    def _delete(self, candidate: PruneCandidate, reason: str) -> None:
        try:
            entry = self.deleter.delete(candidate, reason, self._evaluate_again)
            if entry is not None:
                self._add(entry)
        finally:
            self._slots.release()

    def _evaluate_again(self, candidate: PruneCandidate) -> Verdict | None:
        """A record stays until the last pod of its job is gone. Errors: ClusterError."""
        verdict = self._evaluate(candidate)
        if not candidate.is_record or verdict is None or verdict[0] is not PruneAction.DELETED:
            return verdict
        try:
            key = CONFIG_MAP_RECORDS.key_of({"metadata": candidate.metadata})
            record = read_record(self.deleter.client, key) if key is not None else None
        except BrokenRecordError as error:
            return PruneAction.INVALID, f"{verdict[1]}, but it can't be read: {error.cause}"
        pods = objects_of(self.deleter.client, record, [PODS])[0] if record is not None else ()
        for pod in pods:
            return PruneAction.KEPT, f"{verdict[1]}; {pod.ref} is still there"
        return verdict

    def _add(self, entry: PruneEntry) -> None:
        """Count one object's end, and hand it on."""
        with self._lock:
            self._counts[entry.action] += 1
            if entry.action not in self._silent:
                self.on_entry(entry)
