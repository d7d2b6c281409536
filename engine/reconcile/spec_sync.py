"""From the directory to the controller: what the specs say now, and what is reported of it."""

import os
import threading
import time
from collections.abc import Callable
from enum import Enum
from functools import partial
from queue import Empty, SimpleQueue

from engine.api.foreign import ForeignDocument, foreign_notes
from engine.errors import Diagnostic, Severity
from engine.reconcile.controller import JobController
from engine.reconcile.job_store import Changes
from engine.reconcile.removed_jobs import RemovedJobs
from engine.render.templates import Templates
from engine.runtime.leader_election import LeaderElector
from engine.specdir.source import DirectorySource, Snapshot
from engine.telemetry.events import Emit, Notice, Progress, SpecFixed, SpecProblem, SpecsRead

_TICK, _LEADER_TICK = 1.0, 0.02
_LONG = 0.5
_STALL_TIMEOUT = 300.0
"""A busy server may be waited for a minute; that is no reason to start again."""


class _Call(Enum):
    CHANGED = "changed"
    RELOAD = "reload"


class SpecSync:
    """Reads the directory whenever it changes, and makes its jobs the controller's.

    `unreadable` and `problems` are for everybody to read. `templates` reads the templates;
    `namespace` is that of a spec without one; with `wait_for` nothing is read before that elector
    leads.
    """

    name = "spec directory"
    grace = 0.0

    def __init__(
        self,
        source: DirectorySource,
        controller: JobController,
        templates: Callable[[], Templates],
        *,
        namespace: str,
        removed_jobs: RemovedJobs | None,
        allow_empty: bool,
        wait_for: LeaderElector | None,
    ) -> None:
        self.unreadable = "not read yet"
        """Why the directory can't be read; "" if it can."""
        self.problems = 0
        """Of its files, warnings counted."""
        self.incomplete = "the specs have not been read"
        """Why a job without a spec may have one all the same; "" if none has."""
        self._source = source
        self._controller = controller
        self._templates = templates
        self._namespace = namespace
        self._removed_jobs = removed_jobs
        self._allow_empty = allow_empty
        self._wait_for = wait_for
        self._reporter = SpecReporter(controller.emit)
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._pending: set[_Call] = set()
        self._started = False
        self._snapshot: Snapshot | None = None

    def reload(self) -> None:
        """Read configuration, templates and specs again. May be called from a signal handler."""
        self._calls.put(_Call.RELOAD)

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Read, and read again after each change, until `stop` is set.

        Errors: none of the source's own; after any other the next call goes on where this ended.
        """
        while self._wait_for is not None and not self._wait_for.is_leader:
            heartbeat(_STALL_TIMEOUT)
            if stop.wait(_LEADER_TICK):
                return
        if not self._started:
            self._started = True
            self._pending.add(_Call.CHANGED)
            self._source.start(self._on_change, self._controller.supervisor)
        while not stop.is_set():
            heartbeat(_STALL_TIMEOUT)
            try:
                self._sync(stop, partial(heartbeat, _STALL_TIMEOUT))
            except Exception as error:
                self.unreadable = self.incomplete = f"internal error: {type(error).__name__}"
                if self._removed_jobs is not None:
                    self._removed_jobs.set_blocked(self.unreadable)
                raise
            self._listen()
        self._source.stop()

    def _on_change(self) -> None:
        self._calls.put(_Call.CHANGED)

    def _listen(self) -> None:
        """Wait for a call, and take all there are."""
        try:
            self._pending.add(self._calls.get(timeout=_TICK))
            while True:
                self._pending.add(self._calls.get_nowait())
        except Empty:
            return

    def _sync(self, stop: threading.Event, on_file: Callable[[], None]) -> None:
        """Put in force what the source says now, if it may have changed."""
        if not self._pending:
            return
        controller = self._controller
        if _Call.RELOAD in self._pending:
            controller.emit(Notice("reading configuration, templates and specs again"))
            self._source.reload()
            controller.configure(controller.config, self._templates())
            self._pending = {_Call.CHANGED}
        snapshot = self._read(on_file)
        if stop.is_set():
            return
        if snapshot.config is not controller.config:
            controller.configure(snapshot.config, self._templates())
        self.unreadable, self.problems = snapshot.unreadable, len(snapshot.problems)
        changes = controller.sync(snapshot.jobs)
        self.incomplete = self._incomplete(snapshot)
        if self._removed_jobs is not None:
            self._removed_jobs.set_blocked(self.incomplete)
        if snapshot is not self._snapshot:
            self._reporter.report(snapshot, changes)
        if self._snapshot is None and self._removed_jobs is not None:
            controller.watch_namespaces_with_records(self._namespace)
        self._snapshot = snapshot
        self._pending.clear()

    def _read(self, on_file: Callable[[], None]) -> Snapshot:
        """What the source says now; that it takes long is shown to who looks on."""
        begun, is_long = time.monotonic(), False

        def on_any_file() -> None:
            nonlocal is_long
            on_file()
            if not is_long and time.monotonic() - begun > _LONG:
                is_long = True
                self._controller.emit(Progress("reading specs"))

        snapshot = self._source.read(on_any_file)
        if is_long:
            self._controller.emit(Progress(""))
        return snapshot

    def _incomplete(self, snapshot: Snapshot) -> str:
        """Why nothing may be removed for want of a spec now; "" if it may."""
        if snapshot.unreadable:
            return snapshot.unreadable
        in_error = any(problem.severity is Severity.ERROR for problem in snapshot.problems)
        if in_error or not snapshot.complete:
            return "not every spec can be read"
        if not snapshot.jobs and not self._allow_empty:
            return "there are no specs at all (--allow-empty, if that is meant)"
        return ""


class SpecReporter:
    """What another reading of the specs brought: what stays as it is is reported once."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._problems: frozenset[Diagnostic] = frozenset()
        self._foreign: tuple[ForeignDocument, ...] = ()
        self._unreadable = ""

    def report(self, snapshot: Snapshot, changes: Changes) -> None:
        """New problems, files that are fixed or gone, what was skipped, counts."""
        problems = frozenset(snapshot.problems)
        for problem in snapshot.problems:
            if problem not in self._problems:
                self._emit(SpecProblem(problem))
        files = {problem.where.file for problem in problems}
        for file in sorted({problem.where.file for problem in self._problems} - files):
            self._emit(SpecFixed(file, gone=not os.path.lexists(file)))
        self._problems = problems
        self._report_unreadable(snapshot.unreadable)
        if snapshot.foreign != self._foreign:
            self._foreign = snapshot.foreign
            for note in foreign_notes(snapshot.foreign):
                self._emit(Notice(note))
        self._emit(
            SpecsRead(
                snapshot.files,
                len(snapshot.jobs),
                len(changes.added),
                len(changes.changed),
                len(changes.removed),
            )
        )

    def _report_unreadable(self, why: str) -> None:
        if why and why != self._unreadable:
            self._emit(SpecProblem(f"{why}; what was read before stays in force"))
        if self._unreadable and not why:
            self._emit(Notice("the specs can be read again"))
        self._unreadable = why
