"""Bring the jobs of the directory to the controller, and report what has changed."""

import os
import threading
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from engine.api.model import Config
from engine.api.other_kinds import foreign_notes
from engine.errors import Severity
from engine.lifecycle.outdated import explain_outdated, outdated_fields
from engine.lifecycle.rename import renames
from engine.reconcile.controller import JobController
from engine.reconcile.job_store import Changes
from engine.render.templates import Templates
from engine.specdir.source import DirectorySource, Snapshot
from engine.telemetry.events import Notice, SpecProblem, SpecsRead

_TICK, _LEADER_TICK = 1.0, 0.02
_STALL_TIMEOUT = 300.0
"""A busy server may be waited for a minute; that is no reason to start again."""


class SpecSync(Struct, eq=False):
    """Reads the directory whenever it changes, and makes its jobs the desired ones.

    A configuration comes into force with `templates` that are read anew. Without `--leader-elect`
    nothing is read before this engine holds the Lease. With `--prune` the namespaces are watched
    that have records, once the specs have been read.
    """

    source: DirectorySource
    config: Config
    controller: JobController
    templates: Callable[[], Templates]
    unreadable: str = "not read yet"
    """Why the directory can't be read; "" if it can."""
    problems: int = 0
    """Of its files, warnings included."""
    incomplete: str = "the specs have not been read"
    """Why a job without a spec may have one all the same; "" if none has."""
    _is_started: bool = False
    _is_pending: bool = True
    _is_reloading: bool = False
    _watches_records: bool = False
    _outdated: str = ""
    """What was said last of jobs that ran with other defaults."""
    _looks_for_outdated: bool = False
    _reported: Snapshot = Snapshot({}, Config(), (), "", complete=False, files=0)

    def reload(self) -> None:
        """Read configuration, templates and specs again. May be called from a signal handler."""
        self._is_reloading = True
        self.source.reload()

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Read, and read again after each change, until `stop` is set.

        Errors: none of the source's own; after any other the next call goes on where this ended.
        """
        while not (self.controller.options.leader_elect or self.controller.is_member):
            heartbeat(_STALL_TIMEOUT)
            if stop.wait(_LEADER_TICK):
                return
        if not self._is_started:
            self._is_started = True
            self.source.start()
        while not stop.is_set():
            heartbeat(_STALL_TIMEOUT)
            if self._is_pending:
                self._sync(stop, partial(heartbeat, _STALL_TIMEOUT))
            self._report_outdated()
            self._is_pending = self.source.wait(_TICK)
        self.source.stop()

    def _sync(self, stop: threading.Event, on_file: Callable[[], None]) -> None:
        """Put in force what the source says now."""
        if self._is_reloading:
            self.controller.emit(Notice("reading configuration, templates and specs again"))
        try:
            snapshot = self.source.read(on_file)
            if not stop.is_set():
                self._apply(snapshot)
        except Exception as error:
            self.incomplete = self.unreadable = f"internal error: {type(error).__name__}"
            raise

    def _apply(self, snapshot: Snapshot) -> None:
        if self._is_reloading or snapshot.config is not self.config:
            self.controller.configure(snapshot.config, self.templates())
            self._is_reloading, self.config = False, snapshot.config
        self.unreadable, self.problems = snapshot.unreadable, len(snapshot.problems)
        changes = self.controller.sync(snapshot.jobs)
        if self.source.objects is not None:
            self.source.objects.report(snapshot.problems, snapshot.jobs)
        self.incomplete = self._why_incomplete(snapshot)
        if snapshot is not self._reported:
            self._report(snapshot, changes)
            self._looks_for_outdated = snapshot.complete
        if self.controller.options.prune and not self._watches_records:
            self.controller.watch_namespaces_with_records(self.controller.options.home)
            self._watches_records = True

    def _report_outdated(self) -> None:
        """Once for each reading that brings something new, when defaults and records are known."""
        informers, desired = self.controller.informers, self.controller.store.desired
        if not self._looks_for_outdated or informers.waits:
            return
        self._looks_for_outdated = False
        jobs = ((desired.get(record.key), record) for record in informers.own_records())
        found = (outdated_fields(job, record) for job, record in jobs if job is not None)
        words = explain_outdated(found, self.source.paths)
        if words not in ("", self._outdated):
            self.controller.emit(Notice(words))
        self._outdated = words

    def _why_incomplete(self, snapshot: Snapshot) -> str:
        if snapshot.unreadable:
            return snapshot.unreadable
        in_error = any(problem.severity is Severity.ERROR for problem in snapshot.problems)
        if in_error or not snapshot.complete:
            return "not every spec can be read"
        if not snapshot.jobs and not self.controller.options.allow_empty:
            return "there are no specs at all (--allow-empty, if that is meant)"
        return ""

    def _report(self, snapshot: Snapshot, changes: Changes) -> None:
        """Report new problems, fixed or removed files, skipped documents, and counts."""
        emit, before = self.controller.emit, self._reported
        self._reported = snapshot
        known = frozenset(before.problems)
        for problem in snapshot.problems:
            if problem not in known:
                emit(SpecProblem(problem))
        files = {problem.where.file for problem in snapshot.problems}
        for file in sorted({problem.where.file for problem in before.problems} - files):
            emit(Notice("fixed" if os.path.lexists(file) else "removed", file))
        if snapshot.unreadable and snapshot.unreadable != before.unreadable:
            words = f"{snapshot.unreadable}; the specs that were read before stay in force"
            emit(SpecProblem(words))
        if before.unreadable and not snapshot.unreadable:
            emit(Notice("the specs can be read again"))
        if snapshot.foreign != before.foreign:
            for note in foreign_notes(snapshot.foreign):
                emit(Notice(note))
        new = {key: snapshot.jobs[key].spec_fields for key in changes.added}
        gone = {key: before.jobs[key].spec_fields for key in changes.removed if key in before.jobs}
        for words in renames(new, gone):
            emit(Notice(words))
        emit(SpecsRead(snapshot.files, len(snapshot.jobs), *map(len, changes)))
