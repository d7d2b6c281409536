"""One run over the kinds and namespaces it is given: read by the page, judge, delete a few at once.

Memory doesn't grow with what stays: a page is forgotten once it is judged, and only so many deletes
wait at a time.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from engine.cluster.api import Resource
from engine.cluster.client import Client
from engine.cluster.discovery import find_resources
from engine.cluster.server import check_server_version
from engine.decide.prune import Delete, Verdict, judge
from engine.decide.prune.rule import owner_of
from engine.errors import ClusterError, EngineError, UsageError
from engine.prune.brake import Brake
from engine.prune.delete import Deleter, JudgeAgain, words_of
from engine.prune.last_failed import last_failed
from engine.prune.options import DryRun, PruneOptions
from engine.prune.orphans import judge_orphan, may_be_orphan
from engine.prune.pages import pages
from engine.prune.rescue import Rescue
from engine.prune.result import (
    PruneAction,
    PruneEntry,
    PruneResult,
    Tally,
    Tell,
    Why,
)
from engine.prune.target import Target
from engine.prune.tell_events import EventTeller
from engine.prune.uids import UidSet
from engine.runtime.retry import TRIES, retry_transient

_WAITING_PER_WORKER = 4


def prune(client: Client, options: PruneOptions, tell: Tell) -> PruneResult:
    """Delete what has outlived its TTL; `tell` is called for every object that carries one.

    Guarantees: only what was read completely, judged expired and has not changed since is deleted.
    A list that fails in the middle ends its own kind and namespace, and is among the errors.
    Errors: UnsupportedServerError before anything else is asked, UsageError for a kind that isn't
    there, ClusterError when discovery fails.
    """
    retry_transient(lambda: check_server_version(client), tries=TRIES)
    resources = find_resources(client, options.kinds)
    for resource in resources:
        if not resource.namespaced and "" not in options.namespaces:
            hint = "prune them with --all-namespaces"
            raise UsageError(
                "objects of this kind are in no namespace", where=resource.plural, hint=hint
            )
    return PruneRun(client, options, tell).run(resources)


class PruneRun:
    """The state of one run."""

    def __init__(self, client: Client, options: PruneOptions, tell: Tell) -> None:
        self._client = client
        self._options = options
        self._tally = Tally(tell)
        self._brake = Brake(options.max_deletes)
        rescue = Rescue(client, options.logs_dir)
        self._deleter = Deleter(client, rescue, options.dry_run, options.grace)
        self._events = EventTeller(client, options.events)
        self._room = threading.BoundedSemaphore(options.concurrency * _WAITING_PER_WORKER)
        self._pods = UidSet()
        self._last_failed: frozenset[str] = frozenset()

    def run(self, resources: tuple[Resource, ...]) -> PruneResult:
        """Pods come first: what they own is then known to have an owner."""
        ordered = sorted(resources, key=lambda resource: resource.kind != "Pod")
        with ThreadPoolExecutor(self._options.concurrency, "prune") as pool:
            for namespace in dict.fromkeys(self._options.namespaces):
                self._pods = UidSet()
                for resource in ordered:
                    self._scan(pool, namespace, resource)
        return self._result()

    def run_over(self, targets: Iterable[Target], last_failed: frozenset[str]) -> PruneResult:
        """The same for objects that somebody has listed already."""
        self._last_failed = last_failed
        with ThreadPoolExecutor(self._options.concurrency, "prune") as pool:
            for target in targets:
                self._look(pool, target)
        return self._result()

    def _result(self) -> PruneResult:
        left = self._tally.result().kept.get(Why.BRAKED, 0)
        if left:
            words = f"the limit of {self._options.max_deletes} deletes is reached"
            self._tally.add_error(EngineError(words, hint=f"{left} more would go"))
        return self._tally.result()

    def _scan(self, pool: ThreadPoolExecutor, namespace: str, resource: Resource) -> None:
        seen = 0
        try:
            if resource.kind == "Pod":
                self._last_failed = last_failed(self._client, namespace, self._options.keep_failed)
            for page in pages(self._client, resource, namespace, self._options.selector):
                if resource.kind == "Pod":
                    self._pods.add(metadata["uid"] for metadata in page)
                for metadata in page:
                    self._look(pool, Target(resource, metadata))
                seen += len(page)
        except EngineError as error:
            where = f"{resource.plural} in {namespace or 'all namespaces'}"
            words = f"the list ended after {seen} objects: {words_of(error)}"
            self._tally.add_error(ClusterError(words, where=where, hint=error.hint))

    def _look(self, pool: ThreadPoolExecutor, target: Target) -> None:
        verdict = self._judge(target)
        owner = owner_of(target.metadata)
        if (
            owner is not None
            and may_be_orphan(self._client, target, verdict, self._options.orphan_grace)
            and owner["uid"] not in self._pods
        ):
            self._submit(pool, partial(self._end_orphan, target))
        elif isinstance(verdict, Delete):
            if target.uid in self._last_failed:
                self._tally.add(target.kept(f"{verdict.reason}, one of the last failed"))
            else:
                self._submit(pool, partial(self._end, target, verdict.reason, self._judge))
        elif verdict is None:
            self._tally.add_unmarked()
        else:
            self._tally.add(target.stays(verdict))

    def _judge(self, target: Target) -> Verdict | None:
        if target.is_record:
            return None
        return judge(target.metadata, self._client.now(), self._options.annotations)

    def _judge_orphan(self, target: Target) -> Verdict | None:
        return judge_orphan(self._client, target, self._options.annotations)

    def _submit(self, pool: ThreadPoolExecutor, work: Callable[[], None]) -> None:
        """Waits while too much is waiting: what waits is kept in memory."""
        self._room.acquire()
        pool.submit(work).add_done_callback(lambda _: self._room.release())

    def _end_orphan(self, target: Target) -> None:
        try:
            verdict = self._judge_orphan(target)
        except EngineError as error:
            self._tally.add(target.failed(f"its pod could not be read: {words_of(error)}"))
            return
        match verdict:
            case Delete(reason):
                self._end(target, reason, self._judge_orphan)
            case None:
                self._tally.add_unmarked()
            case _:
                self._tally.add(target.stays(verdict))

    def _end(self, target: Target, reason: str, judge_again: JudgeAgain) -> None:
        """In a worker: delete, or say why not."""
        if not self._brake.take():
            self._tally.add(target.braked(reason))
            return
        entry: PruneEntry | None
        if self._options.dry_run is DryRun.CLIENT:
            entry = target.would_go(reason)
        else:
            try:
                entry = self._deleter.delete(target, reason, judge_again)
            except Exception as error:  # noqa: BLE001 - one object must not stop the others
                entry = target.failed(f"internal error: {type(error).__name__}: {error}")
        if entry is None or entry.action not in (PruneAction.DELETED, PruneAction.WOULD_DELETE):
            self._brake.give_back()
        if entry is not None:
            self._tally.add(entry)
            if entry.action is PruneAction.DELETED:
                self._events.pruned(target, entry.reason)
