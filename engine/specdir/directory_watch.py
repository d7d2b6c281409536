"""Notice changes below the source's paths: by inotify, or by a scan every few seconds."""

import errno
import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileAttribEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)

from engine.runtime.supervisor import Supervisor
from engine.specdir.clocks import SYSTEM_CLOCKS, Clocks
from engine.specdir.debounce import QUIET_SECONDS, Debouncer
from engine.specdir.scan import is_below
from engine.specdir.watch_set import WatchSet

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

STILL_FOR = 1.0
"""Seconds without a write after which a file counts as complete, and events as late ones."""
_RESCAN = 60.0
_POLL = 2.0
_SPARE = Path(__file__).parent
"""A folder that is there, and that nobody else watches."""
_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileAttribEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
]
"""Not those of reading: a scan must not look like a change."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES})
_HINTS = {
    errno.ENOSPC: "raise fs.inotify.max_user_watches",
    errno.EMFILE: "raise fs.inotify.max_user_instances or the limit of open files",
}


def inotify_observer() -> "BaseObserver":
    """The observer that is watchdog's `Observer` on Linux; it tells a move that has one known
    end from the creation of a file that is being written.

    Errors: ImportError where there is no inotify, OSError when there are too many already.
    """
    from watchdog.observers.inotify import InotifyObserver  # noqa: PLC0415 - 38 ms

    logging.getLogger("watchdog").addHandler(logging.NullHandler())  # it logs its own stop
    return InotifyObserver(generate_full_events=True)


class DirectoryWatch(FileSystemEventHandler):
    """Calls `on_change` when it is time to read.

    With inotify a scan every minute, and one a second after each event, make up for events that
    came late or never: `has_changed` is asked then. Without inotify (`poll` given, none to be
    had, its limits reached, its threads ended) `has_changed` is asked every `poll` seconds; that
    this has come about is said once, by `on_notice`.

    The observer holds events back for half a second behind a file that was moved out of a tree;
    nothing is lost by it.
    """

    def __init__(
        self,
        *,
        poll: float | None,
        has_changed: Callable[[], bool],
        on_notice: Callable[[str], None],
        make_observer: Callable[[], "BaseObserver"],
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        self.polling = poll is not None
        self.poll_interval = poll if poll is not None else _POLL
        self._has_changed = has_changed
        self._on_notice = on_notice
        self._make_observer = make_observer
        self._clocks = clocks
        self._lock = threading.Lock()
        self._started_at = 0.0
        self._completed: dict[str, float] = {}
        """When each file was closed or renamed, for the last few of them."""
        self._observer: BaseObserver | None = None
        self._debouncer: Debouncer | None = None
        self._watches: dict[tuple[str, bool], tuple[tuple[int, int], ObservedWatch]] = {}
        """By path and whether it is a tree; with the identity of the folder."""
        self._trees: frozenset[str] = frozenset()
        self._has_new_folders = False

    @property
    def started(self) -> bool:
        """Whether changes are looked for."""
        return self._debouncer is not None

    def start(self, on_change: Callable[[], None], supervisor: Supervisor) -> None:
        """Errors: none; without inotify it polls."""
        interval = self.poll_interval if self.polling else _RESCAN
        self._started_at = self._clocks.monotonic()
        self._debouncer = Debouncer(on_change, self._check, interval)
        if not self.polling:
            try:
                self._observer = self._make_observer()
                self._observer.start()
            except (ImportError, OSError) as error:
                self._fall_back(error)
        self._debouncer.start(supervisor)

    def set_watches(self, wanted: WatchSet) -> bool:
        """Watch these folders from now on; whether one is watched that wasn't.

        Guarantees: a folder that was removed and made again is watched again. Errors: none.
        """
        observer = self._observer
        if self.polling or observer is None:
            self._close()
            return False
        keys = [(path, True) for path in wanted.trees] + [(path, False) for path in wanted.folders]
        found = {key: identity for key in keys if (identity := _identity(key[0]))}
        for key in [key for key, (old, _) in self._watches.items() if found.get(key) != old]:
            observer.unschedule(self._watches.pop(key)[1])
        self._trees = wanted.trees
        new = found.keys() - self._watches.keys()
        try:
            for key in new:
                self._watches[key] = found[key], self._schedule(observer, *key)
            if new or self._has_new_folders:
                self._has_new_folders = False
                self._require_room(observer)
        except OSError as error:
            if error.errno not in _GONE:
                self._fall_back(error)
        return bool(new)

    def completed_at(self, path: str) -> float:
        """When the file at the real `path` was last known to be complete, by `clocks.monotonic`."""
        return self._completed.get(path, self._started_at)

    def schedule(self, seconds: float) -> None:
        """Call `on_change` in `seconds`, or before."""
        if self._debouncer is not None:
            self._debouncer.schedule(seconds)

    def stop(self) -> None:
        """Guarantees: `on_change` isn't called any more once this returns."""
        debouncer, self._debouncer = self._debouncer, None
        if debouncer is not None:
            debouncer.stop()
        self._close()

    def dispatch(self, event: FileSystemEvent) -> None:
        """Take an event; the observer's thread calls this. Errors: none; it polls from then on."""
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - the thread must live, or be replaced
            self._fall_back(error)

    def _on_event(self, event: FileSystemEvent) -> None:
        debouncer = self._debouncer
        if debouncer is None:
            return
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        debouncer.check_in(STILL_FOR)
        if event.is_directory:
            self._has_new_folders = True
        elif isinstance(event, FileClosedEvent | FileMovedEvent) or _is_whole(event):
            self._completed[target or source] = self._clocks.monotonic()
        elif isinstance(event, FileCreatedEvent | FileModifiedEvent):
            self._completed.pop(source, None)
            return
        if is_below(target or source, self._trees) or is_below(source, self._trees):
            debouncer.trigger()
        else:
            debouncer.check_in(QUIET_SECONDS)

    def _schedule(self, observer: "BaseObserver", path: str, recursive: bool) -> "ObservedWatch":
        return observer.schedule(self, path, recursive=recursive, event_filter=_EVENTS)

    def _require_room(self, observer: "BaseObserver") -> None:
        """Errors: OSError when not one more folder can be watched: the observer says nothing of
        folders below a tree that it couldn't watch for that reason.
        """
        observer.unschedule(self._schedule(observer, str(_SPARE), recursive=False))

    def _check(self) -> bool:
        late = self._clocks.monotonic() - 2 * STILL_FOR
        for path in [path for path, at in self._completed.copy().items() if at < late]:
            self._completed.pop(path, None)
        if self._observer is not None and not self.polling and not self._observer.is_alive():
            self._fall_back(RuntimeError("its thread has ended"))
        return self._has_changed()

    def _fall_back(self, error: Exception) -> None:
        with self._lock:
            known, self.polling = self.polling, True
        if known:
            return
        number = error.errno if isinstance(error, OSError) else None
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = f", {_HINTS[number]}" if number in _HINTS else ""
        self._on_notice(
            f"inotify can't watch everything ({why}); polling every {self.poll_interval:g} s{hint}"
        )
        if self._debouncer is not None:
            self._debouncer.set_poll_interval(self.poll_interval)
            self._debouncer.trigger()

    def _close(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            self._watches.clear()
            observer.stop()
            if observer.is_alive():
                observer.join()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - a string, as all of them here
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_whole(event: FileSystemEvent) -> bool:
    """A link is made whole, by whichever name: nobody is going to close it."""
    if not isinstance(event, FileCreatedEvent):
        return False
    try:
        status = os.lstat(event.src_path)
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode) or status.st_nlink > 1
