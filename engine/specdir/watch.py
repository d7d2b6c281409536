"""Notice changes below the source's paths: watchdog's events, debounced, and a regular rescan.

Events may be late or lost, so they only say when to read. A scan finds the files.
"""

# Little pathlib: it is the same few paths at every read.
# ruff: noqa: PTH112, PTH118, PTH119, PTH120

import errno
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserverVFS

from engine.specdir.scan import Root, Signature, is_below, is_spec_name, signature_of
from engine.specdir.write_detector import WriteDetector

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver, ObservedWatch

QUIET_SECONDS = 0.010
"""It is time to read after a burst of events has gone quiet for so long ..."""
MAX_DELAY_SECONDS = 0.250
"""... or has gone on for so long."""
_REST = 10.0
"""A pause is as many times as long as the reading before it, up to the longest delay. While specs
come one by one, there is time for the jobs of those before them.
"""
RESCAN_SECONDS = 60.0
FALLBACK_POLL = 2.0
_MAX_LINKS = 40
_HIDDEN = f"{os.sep}."
_SPARE_FOLDER = os.path.dirname(__file__)
"""A folder that exists, and that has no watch of its own."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES})
_HINTS = {
    errno.ENOSPC: "raise fs.inotify.max_user_watches",
    errno.EMFILE: "raise fs.inotify.max_user_instances or the limit of open files",
}
_EVENTS: list[type[events.FileSystemEvent]] = [
    events.DirCreatedEvent,
    events.DirDeletedEvent,
    events.DirMovedEvent,
    events.FileAttribEvent,
    events.FileClosedEvent,
    events.FileCreatedEvent,
    events.FileDeletedEvent,
    events.FileModifiedEvent,
    events.FileMovedEvent,
]
"""Without those of reading: a scan must not look like a change."""
_WHOLE = (events.EVENT_TYPE_CLOSED, events.EVENT_TYPE_MOVED)
_BEGUN = (events.EVENT_TYPE_CREATED, events.EVENT_TYPE_MODIFIED)
_Key = tuple[str, bool]
"""The real path of a folder, and whether it is watched with all folders below it."""


def make_observer(poll: float | None) -> "BaseObserver":
    """Watchdog's observer for this platform, or one that polls every so many seconds.

    Errors: OSError if the system has no room for one more.
    """
    logging.getLogger("watchdog").addHandler(logging.NullHandler())
    if poll is not None:
        # By lstat: PollingObserver follows links to folders, in circles, too.
        return PollingObserverVFS(os.lstat, os.scandir, polling_interval=poll)
    if sys.platform != "linux":
        return Observer()
    from watchdog.observers.inotify import InotifyObserver  # noqa: PLC0415 - Linux alone has it

    # Full events distinguish a file that is moved in from one that is created and yet unwritten.
    return InotifyObserver(generate_full_events=True)


class DirectoryWatch(events.FileSystemEventHandler):
    """Says when to read the source.

    With `poll` the folders are polled every so many seconds. So they are where the observer can't
    watch all of them, for a limit of the kernel's: `on_notice` reports that once.
    """

    def __init__(self, poll: float | None, on_notice: Callable[[str], None]) -> None:
        self.poll = poll
        self.writes = WriteDetector(poll or 0.0)
        self._on_notice = on_notice
        self._observer: BaseObserver | None = None
        self._watches: dict[_Key, tuple[Signature, ObservedWatch]] = {}
        """With the identity of each folder."""
        self._trees: frozenset[str] = frozenset()
        self._ends: frozenset[str] = frozenset()
        """Paths outside of the trees whose replacement changes the source."""
        self._has_new_folders = False
        self._events: SimpleQueue[None] = SimpleQueue()
        self._quiet_at = self._overdue_at = self._read_at = math.inf
        self._reads_since: float | None = None
        self._rested_at = 0.0

    @property
    def started(self) -> bool:
        """Whether changes are noticed."""
        return self._observer is not None

    def start(self) -> None:
        """Errors: none; where there is no observer for this platform, it polls."""
        self._read_at = time.monotonic() + RESCAN_SECONDS
        try:
            self._observer = make_observer(self.poll)
            self._observer.start()
        except OSError as error:
            self._poll_instead(error)

    def stop(self) -> None:
        """Stop the observer's threads."""
        observer, self._observer = self._observer, None
        self._watches.clear()
        if observer is not None and observer.is_alive():
            observer.stop()
            observer.join()

    def wait(self, seconds: float) -> bool:
        """Wait until it is time to read, at most `seconds`; whether it is."""
        now = time.monotonic()
        end, since = now + seconds, self._reads_since
        if since is not None:
            self._rested_at = now + min(_REST * (now - since), MAX_DELAY_SECONDS)
            self._reads_since = None
        while (now := time.monotonic()) < (
            due := max(min(self._quiet_at, self._overdue_at, self._read_at), self._rested_at)
        ):
            if now >= end:
                return False
            with suppress(Empty):
                self._events.get(timeout=min(due, end) - now)
                self._quiet_at = time.monotonic() + QUIET_SECONDS
                self._overdue_at = min(self._overdue_at, now + MAX_DELAY_SECONDS)
        self._quiet_at = self._overdue_at = math.inf
        self._read_at = now + RESCAN_SECONDS
        self._reads_since = now
        return True

    def wake(self) -> None:
        """Let it be time to read. May be called from a signal handler."""
        self._events.put(None)

    def schedule(self, seconds: float) -> None:
        """Let it be time to read in `seconds`, at the latest."""
        self._read_at = min(self._read_at, time.monotonic() + seconds)

    def watch(self, roots: Iterable[Root], config_file: str, link_targets: Iterable[str]) -> bool:
        """Watch everything that decides what the source says; whether there is something new.

        Guarantees: a folder that was removed and made again is watched again. Errors: none.
        """
        observer = self._observer
        if observer is None:
            return False
        if not observer.is_alive():
            return self._poll_instead(RuntimeError("its thread has ended"))
        keys = self._keys(tuple(roots), config_file, link_targets)
        found = {key: identity for key in keys if (identity := signature_of(key[0])[:2])}
        alive = {emitter.watch for emitter in observer.emitters if emitter.is_alive()}
        for key, (identity, watch) in [*self._watches.items()]:
            if found.get(key) != identity or watch not in alive:
                observer.unschedule(self._watches.pop(key)[1])
        new = found.keys() - self._watches.keys()
        try:
            for key in new:
                self._watches[key] = found[key], self._schedule(observer, *key)
            if self.poll is None and (new or self._has_new_folders):
                self._has_new_folders = False
                self._require_room(observer)
        except OSError as error:
            if error.errno not in _GONE:
                return self._poll_instead(error)
        return bool(new)

    def dispatch(self, event: events.FileSystemEvent) -> None:
        """Take an event; the observer's thread calls this."""
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        path = target or source
        if event.is_directory:
            self._has_new_folders = True
        elif event.event_type in _WHOLE and not event.is_synthetic:
            self.writes.closed(path, signature_of(path))
        elif event.event_type in _BEGUN:
            self.writes.opened(path)
        if any(map(self._matters, {source, path})):
            self._events.put(None)

    def _matters(self, path: str) -> bool:
        """Whether the source may say something else after a change of the real `path`."""
        if path in self._ends or is_spec_name(os.path.basename(path)):
            return True
        return any(
            is_below(path, (tree,)) and _HIDDEN not in path[len(tree) :] for tree in self._trees
        )

    def _keys(
        self, roots: tuple[Root, ...], config_file: str, link_targets: Iterable[str]
    ) -> set[_Key]:
        trees = {os.path.realpath(root.path) for root in roots if os.path.isdir(root.path)}
        targets = set(link_targets)
        paths = {root.path for root in roots} | targets | ({config_file} if config_file else set())
        ends = {end for path in paths for end in _ends(Path(path))}
        folders = {os.path.dirname(end) for end in ends} | targets
        folders.update(folder for root in roots for folder in root.parent_defaults)
        found = {os.path.realpath(folder) for folder in folders if os.path.isdir(folder)}
        self._trees, self._ends = frozenset(trees), frozenset(ends)
        return {(tree, True) for tree in trees} | {
            (folder, False) for folder in found if not is_below(folder, trees)
        }

    def _schedule(self, observer: "BaseObserver", path: str, recursive: bool) -> "ObservedWatch":
        return observer.schedule(self, path, recursive=recursive, event_filter=_EVENTS)

    def _require_room(self, observer: "BaseObserver") -> None:
        """Errors: OSError if not one more folder can be watched.

        The observer doesn't report a folder below a tree that it couldn't watch for that reason.
        """
        observer.unschedule(self._schedule(observer, _SPARE_FOLDER, recursive=False))

    def _poll_instead(self, error: Exception) -> bool:
        """Replace the observer by one that polls; True, since it watches nothing yet."""
        self.stop()
        if self.poll is None:
            self.poll = FALLBACK_POLL
            self.writes.still_for = max(self.writes.still_for, FALLBACK_POLL)
            number = error.errno if isinstance(error, OSError) else None
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            hint = f", {_HINTS[number]}" if number in _HINTS else ""
            self._on_notice(
                f"inotify can't watch everything ({why}); polling every {self.poll:g} s{hint}"
            )
        self._observer = make_observer(self.poll)
        self._observer.start()
        return True


def _ends(path: Path, links: int = _MAX_LINKS) -> Iterator[str]:
    """Every link on the way of the absolute `path`, and its end: replaced, it leads elsewhere.

    Where the way breaks off, the missing part is the end. Errors: none.
    """
    end = ""
    for here in (*reversed(path.parents), path):
        end = os.path.join(os.path.realpath(here.parent), here.name)
        with suppress(OSError):
            if links and here.is_symlink():
                yield end
                target = here.parent / here.readlink() / path.relative_to(here)
                yield from _ends(target, links - 1)
                return
        if not here.is_dir():
            break
    yield end
