"""From the specs to the queue: what is in force, what changed, and where to listen for it."""

from collections.abc import Callable

from engine.api.model import Config
from engine.cluster.client import Client
from engine.cluster.records import list_records
from engine.errors import ForbiddenError, Severity
from engine.manager.jobs import Changes, Jobs
from engine.manager.options import ManagerOptions
from engine.manager.removals import Removals
from engine.manager.specs import SpecNews
from engine.manager.turns import Turns
from engine.reconcile.watches import Watches
from engine.refs import JobKey
from engine.runtime.retry import retry_transient
from engine.runtime.workqueue import WorkQueue
from engine.specdir.source import DirectorySource, Snapshot
from engine.telemetry.events import Emit
from engine.wellknown import SOURCE


class Intake:
    """Used from one thread; `unreadable` and `problems` are for everybody to read.

    Guarantees: a job whose namespace has not been read yet is queued once it has been; what has
    changed is queued at once, and nothing else. `on_config` is called before anything is queued
    that another configuration holds for.
    """

    def __init__(
        self,
        source: DirectorySource,
        config: Config,
        options: ManagerOptions,
        jobs: Jobs,
        watches: Watches,
        queue: WorkQueue[JobKey],
        turns: Turns,
        removals: Removals,
        on_config: Callable[[Config], None],
        emit: Emit,
    ) -> None:
        self._source = source
        self._config = config
        self._options = options
        self._jobs = jobs
        self._watches = watches
        self._queue = queue
        self._turns = turns
        self._removals = removals
        self._on_config = on_config
        self._news = SpecNews(emit)
        self._last: Snapshot | None = None
        self._unsynced: set[str] = set()
        self.unreadable = "not read yet"
        self.problems = 0

    @property
    def is_waiting(self) -> bool:
        """Whether a namespace that is followed has not been read yet."""
        return bool(self._unsynced)

    def read(self) -> None:
        """Put in force what the source says now."""
        snapshot = self._source.read()
        if snapshot.config is not self._config:
            self._config = snapshot.config
            self._on_config(snapshot.config)
        changes = self._jobs.update(snapshot.jobs)
        self.unreadable, self.problems = snapshot.unreadable, len(snapshot.problems)
        self._removals.permit(self._objection(snapshot))
        for key in (*changes.added, *changes.changed):
            self._follow(key.namespace)
        self._leave(changes)
        self._queue_changed(changes)
        if snapshot is not self._last:
            self._news.tell(snapshot, changes)
        self._last = snapshot

    def follow_what_is_left(self, client: Client, say: Callable[[str], None]) -> None:
        """Listen where the source has records, and perhaps no spec any more.

        Errors: those of a list that fails for long; without the right to it, nothing happens.
        """
        selector = f"{SOURCE}={self._options.source}"
        try:
            found = retry_transient(lambda: list_records(client, "", selector), say)
        except ForbiddenError:
            return
        for key in found.items:
            self._follow(key.namespace)

    def queue_synced(self) -> None:
        """Queue the jobs of namespaces that have been read since the last time."""
        synced = {name for name in self._unsynced if self._watches.has_synced(name)}
        self._unsynced -= synced
        for key in self._known() if synced else ():
            if key.namespace in synced:
                self._queue.add(key)

    def queue_all(self) -> None:
        for key in self._known():
            self._queue.add(key)

    def _known(self) -> list[JobKey]:
        return sorted(self._jobs.living | {memory.job.key for memory in self._jobs.memories})

    def _queue_changed(self, changes: Changes) -> None:
        changed = (*changes.added, *changes.changed, *changes.removed)
        for key in dict.fromkeys((*changed, *tuple(self._turns.unprepared))):
            self._turns.limit.forget(key)
            self._queue.add(key)

    def _follow(self, namespace: str) -> None:
        self._watches.follow(namespace)
        if not self._watches.has_synced(namespace):
            self._unsynced.add(namespace)

    def _leave(self, changes: Changes) -> None:
        """A namespace that could never be read and that no spec names any more is left alone."""
        named = {key.namespace for key in self._jobs.living}
        lost = {key.namespace for key in changes.removed} - named
        for name in sorted(lost & self._unsynced):
            self._unsynced.discard(name)
            self._watches.unfollow(name)

    def _objection(self, snapshot: Snapshot) -> str:
        """Why nothing may be removed now; "" if it may."""
        if not self._options.prune:
            return "removal was not asked for"
        if snapshot.unreadable:
            return snapshot.unreadable
        in_error = any(problem.severity is Severity.ERROR for problem in snapshot.problems)
        if in_error or not snapshot.complete:
            return "not every spec can be read"
        if not snapshot.jobs and not self._options.allow_empty:
            return "there are no specs at all (--allow-empty, if that is meant)"
        return ""
