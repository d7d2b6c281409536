"""Bring the jobs of the directory to the controller, and report what has changed."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from engine.api.model import Config, Job
from engine.api.other_kinds import foreign_notes
from engine.errors import Diagnostic, Severity
from engine.reconcile.job_store import Changes
from engine.refs import JobKey
from engine.runtime.leader_election import LeaderElector
from engine.specdir.source import DirectorySource, Snapshot
from engine.telemetry.events import Emit, Notice, Progress, SpecProblem, SpecsRead

_TICK, _LEADER_TICK = 1.0, 0.02
_LONG_READ = 0.5
_STALL_TIMEOUT = 300.0
"""A busy server may be waited for a minute; that is no reason to start again."""


class SpecSync:
    """Reads the directory whenever it changes, and makes its jobs the desired ones.

    `configure` puts a configuration in force, with templates that are read anew; `sync` makes jobs
    the desired ones. With `wait_for` nothing is read before that elector leads.
    """

    name = "spec directory"
    grace = 0.0

    def __init__(
        self,
        source: DirectorySource,
        config: Config,
        *,
        emit: Emit,
        configure: Callable[[Config], object],
        sync: Callable[[Mapping[JobKey, Job]], Changes],
        allow_empty: bool,
        wait_for: LeaderElector | None,
    ) -> None:
        self.unreadable = "not read yet"
        """Why the directory can't be read; "" if it can."""
        self.problems = 0
        """Of its files, warnings included."""
        self.incomplete = "the specs have not been read"
        """Why a job without a spec may have one all the same; "" if none has."""
        self._source = source
        self._config = config
        self._emit = emit
        self._configure = configure
        self._sync_jobs = sync
        self.on_incomplete: Callable[[str], None] = lambda _why: None
        """Gets what `incomplete` says after each reading."""
        self.on_first_read: Callable[[], None] = lambda: None
        self._allow_empty = allow_empty
        self._wait_for = wait_for
        self._is_started = False
        self._is_pending = True
        self._is_reloading = False
        self._snapshot: Snapshot | None = None
        self._reported = Snapshot({}, config, (), "", complete=False, files=0)

    def reload(self) -> None:
        """Read configuration, templates and specs again. May be called from a signal handler."""
        self._is_reloading = True
        self._source.reload()

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Read, and read again after each change, until `stop` is set.

        Errors: none of the source's own; after any other the next call goes on where this ended.
        """
        while self._wait_for is not None and not self._wait_for.is_leader:
            heartbeat(_STALL_TIMEOUT)
            if stop.wait(_LEADER_TICK):
                return
        if not self._is_started:
            self._is_started = True
            self._source.start()
        while not stop.is_set():
            heartbeat(_STALL_TIMEOUT)
            if self._is_pending:
                self._sync(stop, partial(heartbeat, _STALL_TIMEOUT))
            self._is_pending = self._source.wait(_TICK)
        self._source.stop()

    def _sync(self, stop: threading.Event, on_file: Callable[[], None]) -> None:
        """Put in force what the source says now."""
        if self._is_reloading:
            self._emit(Notice("reading configuration, templates and specs again"))
        try:
            snapshot = self._read(on_file)
            if not stop.is_set():
                self._apply(snapshot)
        except Exception as error:
            self.unreadable = f"internal error: {type(error).__name__}"
            self._set_incomplete(self.unreadable)
            raise

    def _read(self, on_file: Callable[[], None]) -> Snapshot:
        """What the source says now; a long read is shown as progress."""
        begun, is_long, emit = time.monotonic(), False, self._emit

        def on_any_file() -> None:
            nonlocal is_long
            on_file()
            if not is_long and time.monotonic() - begun > _LONG_READ:
                is_long = True
                emit(Progress("reading specs"))

        snapshot = self._source.read(on_any_file)
        if is_long:
            emit(Progress(""))
        return snapshot

    def _apply(self, snapshot: Snapshot) -> None:
        if self._is_reloading or snapshot.config is not self._config:
            self._configure(snapshot.config)
            self._is_reloading, self._config = False, snapshot.config
        self.unreadable, self.problems = snapshot.unreadable, len(snapshot.problems)
        changes = self._sync_jobs(snapshot.jobs)
        self._set_incomplete(self._why_incomplete(snapshot))
        if snapshot is not self._snapshot:
            self._report(snapshot, changes)
        if self._snapshot is None:
            self.on_first_read()
        self._snapshot = snapshot

    def _set_incomplete(self, why: str) -> None:
        self.incomplete = why
        self.on_incomplete(why)

    def _why_incomplete(self, snapshot: Snapshot) -> str:
        if snapshot.unreadable:
            return snapshot.unreadable
        in_error = any(problem.severity is Severity.ERROR for problem in snapshot.problems)
        if in_error or not snapshot.complete:
            return "not every spec can be read"
        if not snapshot.jobs and not self._allow_empty:
            return "there are no specs at all (--allow-empty, if that is meant)"
        return ""

    def _report(self, snapshot: Snapshot, changes: Changes) -> None:
        """Report new problems, fixed or removed files, skipped documents, and counts."""
        emit, before = self._emit, self._reported
        self._reported = snapshot
        known = frozenset(before.problems)
        for problem in snapshot.problems:
            if problem not in known:
                emit(SpecProblem(problem))
        for file in sorted(_files(before.problems) - _files(snapshot.problems)):
            emit(Notice("fixed" if os.path.lexists(file) else "removed", file))
        if snapshot.unreadable and snapshot.unreadable != before.unreadable:
            emit(
                SpecProblem(f"{snapshot.unreadable}; the specs that were read before stay in force")
            )
        if before.unreadable and not snapshot.unreadable:
            emit(Notice("the specs can be read again"))
        if snapshot.foreign != before.foreign:
            for note in foreign_notes(snapshot.foreign):
                emit(Notice(note))
        emit(
            SpecsRead(
                snapshot.files,
                len(snapshot.jobs),
                len(changes.added),
                len(changes.changed),
                len(changes.removed),
            )
        )


def _files(problems: tuple[Diagnostic, ...]) -> set[str]:
    return {problem.where.file for problem in problems}
