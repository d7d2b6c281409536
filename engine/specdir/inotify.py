"""Which folders inotify watches, and what its events mean for a source.

Built on watchdog's raw events rather than on its observer. The observer holds every event back
for half a second behind a rename that it hopes to pair, calls a file that was moved in and one
that is just being written by the same name, and keeps silent when a folder can't be watched.
"""

# No pathlib: paths come from the kernel in pieces, thousands of them in a burst.
# ruff: noqa: PTH114, PTH116, PTH118

import errno
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.specdir.heard import Heard

ATTRIB, MODIFY, CLOSE_WRITE = 0x4, 0x2, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF, IS_DIR = 0x400, 0x800, 0x40000000
_ONLY_DIR = 0x01000000
_MASK = (
    ATTRIB | MODIFY | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
    | DELETE_SELF | MOVE_SELF | _ONLY_DIR
)  # fmt: skip
Wanted = Callable[[str], bool]
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES})


class Inotify:
    """Watches trees, hidden folders and all, and single entries of other folders.

    Links to folders aren't followed: what they lead to is covered on its own.
    Errors: OSError when there is no inotify to be had.
    """

    def __init__(self, connect: Callable[[], Any], heard: Heard) -> None:
        self._heard = heard
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self._watches: dict[str, tuple[int, int]] = {}
        self._paths: dict[int, str] = {}
        self._trees: dict[str, tuple[int, int]] = {}
        self._entries: dict[str, Wanted] = {}
        self._closed = False
        self._descriptor = connect()
        self._descriptor.start()

    @property
    def alive(self) -> bool:
        return bool(self._descriptor.is_alive())

    def cover(self, trees: Iterable[str], entries: Mapping[str, Wanted]) -> bool:
        """Watch `trees` with all below them, and of other folders the entries that are wanted.

        Guarantees: a tree that was removed and made again is watched again. Returns whether
        anything is watched now that wasn't.
        """
        with self._lock:
            wanted = {path: identity for path in trees if (identity := _identity(path))}
            for path in [p for p, identity in self._trees.items() if wanted.get(p) != identity]:
                self._drop(path)
            before = len(self._watches)
            self._trees, self._entries = wanted, dict(entries)
            for path in [p for p in self._watches if not (p in entries or self._in_tree(p))]:
                self._forget(path)
                before -= 1
            for path in wanted:
                if path not in self._watches or path in entries:
                    self._add_tree(path)
            for path in entries:
                self._add(path)
            return len(self._watches) > before

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._descriptor.stop()
        if self._descriptor is not threading.current_thread():
            self._descriptor.join(1.0)

    def on_event(self, event: Any) -> None:
        """One event of the kernel; watchdog calls this."""
        try:
            with self._lock:
                folder = self._paths.get(event.wd)
                if folder is not None and not self._closed:
                    self._on_event(event.mask, folder, os.fsdecode(event.name))
        except Exception as error:  # noqa: BLE001 - the thread must live, or say that it doesn't
            self._heard.failed(error)

    def on_watch_deleted(self, wd: int) -> None:
        """The kernel has dropped a watch, for its folder is gone; watchdog calls this."""
        with self._lock:
            path = self._paths.pop(wd, None)
            if path is not None and self._watches.get(path, (None, 0))[0] == wd:
                del self._watches[path]

    def on_queue_overflow(self) -> None:
        """Events were lost; watchdog calls this."""
        with self._lock:
            for path in self._trees:
                self._add_tree(path)
        self._heard.changed(os.sep)

    def _on_event(self, mask: int, folder: str, name: str) -> None:
        path = os.path.join(folder, name) if name else folder
        if mask & (DELETE_SELF | MOVE_SELF):
            self._drop(path)
            self._heard.changed(path)
            return
        in_tree = self._in_tree(folder)
        if not in_tree:
            wanted = self._entries.get(folder)
            if wanted is None or not wanted(name):
                return
        if not mask & IS_DIR:
            self._on_file(mask, path)
            return
        if mask & (MOVED_FROM | MOVED_TO):
            self._drop(path)
        if in_tree and mask & (CREATE | MOVED_TO | ATTRIB):
            self._add_tree(path, new=bool(mask & CREATE))
        self._heard.changed(path)

    def _on_file(self, mask: int, path: str) -> None:
        if mask & MODIFY or (mask & CREATE and not _is_link(path)):
            self._heard.writing(path)
        else:
            self._heard.changed(path)

    def _in_tree(self, path: str) -> bool:
        return any(path == tree or path.startswith(tree + os.sep) for tree in self._trees)

    def _add_tree(self, top: str, *, new: bool = False) -> None:
        """What a new folder holds by now may be half-written, and no event has told of it."""
        folders = [top]
        while folders:
            folder = folders.pop()
            known = folder in self._watches
            if not self._add(folder):
                continue
            try:
                with os.scandir(folder) as listing:
                    for entry in listing:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        elif new and not known and not entry.is_symlink():
                            self._heard.writing(entry.path, just_found=True)
            except OSError:
                continue

    def _add(self, path: str) -> bool:
        if path in self._watches:
            return True
        number = next(self._ids)
        try:
            wd = self._descriptor.add_callback(os.fsencode(path), _MASK, self, number)
        except OSError as error:
            if error.errno not in _GONE:
                self._heard.failed(error)
            return False
        if wd == -1:
            self._descriptor.remove_callbacks([(wd, number)])
            return False
        self._watches[path] = wd, number
        self._paths[wd] = path
        return True

    def _drop(self, top: str) -> None:
        """No longer watch `top` and what is below it."""
        start = os.path.join(top, "")
        for path in [p for p in self._watches if p == top or p.startswith(start)]:
            self._forget(path)

    def _forget(self, path: str) -> None:
        wd, number = self._watches.pop(path)
        if self._paths.get(wd) == path:
            del self._paths[wd]
        try:
            self._descriptor.remove_callbacks([(wd, number)])
        except OSError:
            return


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_link(path: str) -> bool:
    """A link is made whole, by whichever name: nobody is going to close it."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return os.path.islink(path) or status.st_nlink > 1
