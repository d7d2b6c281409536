"""Which spec files there are, and whether they may have changed: a walk that opens no file."""

# No pathlib: a scan makes thousands of paths, and pathlib is many times slower.
# ruff: noqa: PTH114, PTH115, PTH116, PTH118, PTH120

import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.errors import Place, Problem
from engine.specdir.directory import SUFFIXES
from engine.specdir.roots import Root

Signature = tuple[int, ...]
NO_SIGNATURE: Signature = ()
UNSURE: Signature = (-1,)
_CLOCK_TICK_NS = 20_000_000
_ENDINGS = tuple(sorted(SUFFIXES))


@dataclass(slots=True)
class Found:
    """A spec file: its absolute path, its name in messages, and what tells that it has changed.

    Of a file with `defaults_only` nothing counts but its JobDefaults. With an `error` it can't be
    read. Not frozen, for speed: every scan makes thousands.
    """

    key: str
    file: str
    folder: str
    signature: Signature
    error: str = ""
    defaults_only: bool = False


@dataclass(slots=True)
class Scan:
    """What one walk has seen.

    `closed` are folders that can't be read, and `unreadable` says the same of roots, both by
    absolute path; `hidden` are folders of defaults alone. `links` are (folder of a link, folder
    that the link names).
    """

    files: dict[str, Found] = field(default_factory=dict)
    closed: dict[str, Problem] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, bool] = field(default_factory=dict)
    links: set[tuple[str, str]] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)

    def hides(self, path: str) -> bool:
        """Whether `path` may be there all the same, below what can't be read."""
        hidden = (*self.closed, *self.unreadable, *self.hidden)
        return any(path == folder or path.startswith(folder + os.sep) for folder in hidden)


def scan(roots: Iterable[Root], kinds: Mapping[str, bool]) -> Scan:
    """Every spec file of `roots`, by the rules of engine.specdir.directory.

    `kinds` says which of the roots were folders when last seen: one that has become a file, or
    the other way round, can't be read.
    Guarantees: links to files are followed, links to folders only where they are roots. OSError
    is never raised.
    """
    result = Scan(kinds=dict(kinds))
    beside: dict[tuple[str, str], None] = {}
    for root in roots:
        beside.update(dict.fromkeys(root.above))
        if result.kinds.get(root.path) is False:
            beside[root.beside] = None
        try:
            is_folder = stat.S_ISDIR(os.stat(root.path).st_mode)
        except OSError as error:
            result.unreadable[root.path] = f"{root.shown}: {reason(error)}"
            continue
        if result.kinds.setdefault(root.path, is_folder) != is_folder:
            change = "was a file, and is a folder now" if is_folder else "is no folder any more"
            result.unreadable[root.path] = f"{root.shown}: this {change}"
        elif is_folder:
            _walk(root, result)
        else:
            folder, name = os.path.split(root.path)
            _add(name, Found(root.path, root.shown, folder, NO_SIGNATURE), result)
            beside[root.beside] = None
    for shown, folder in beside:
        _defaults_in(shown, folder, result)
    return result


def is_spec_name(name: str) -> bool:
    return name.endswith(_ENDINGS) and not name.startswith(".")


def reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def signature_of(path: str) -> Signature:
    """What changes with the file at `path`; empty when there is none."""
    try:
        return _signature(os.stat(path))
    except OSError:
        return NO_SIGNATURE


def lasting(signature: Signature) -> Signature:
    """UNSURE for a file so young that it could change again and have the same signature."""
    young = signature and time.time_ns() - max(signature[3:]) < _CLOCK_TICK_NS
    return UNSURE if young else signature


def _walk(root: Root, result: Scan) -> None:
    folders = [(root.path, "" if root.shown == "." else os.path.join(root.shown, ""))]
    while folders:
        folder, shown = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            _closed(root, folder, shown, error, result)
            continue
        start = os.path.join(folder, "")
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append((start + name, f"{shown}{name}/"))
            elif name.endswith(_ENDINGS):
                _add(entry, Found(start + name, shown + name, folder, NO_SIGNATURE), result)


def _closed(root: Root, folder: str, shown: str, error: OSError, result: Scan) -> None:
    if folder == root.path:
        result.unreadable[folder] = f"{root.shown}: {reason(error)}"
    elif not isinstance(error, FileNotFoundError):
        place = Place(shown.removesuffix("/"))
        result.closed[folder] = Problem(place, f"can't be read: {reason(error)}")


def _add(entry: os.DirEntry[str] | str, found: Found, result: Scan) -> None:
    """Take up a file, unless it is gone by now, or no file."""
    if found.key in result.files:
        return
    is_link = os.path.islink(found.key) if isinstance(entry, str) else entry.is_symlink()
    if is_link:
        _follow(found, result)
    try:
        status = os.stat(found.key) if isinstance(entry, str) else entry.stat()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not is_link:
            return
        found.error = f"can't be read: {reason(error)}"
    else:
        if stat.S_ISDIR(status.st_mode) or not (is_link or stat.S_ISREG(status.st_mode)):
            return
        found.signature = _signature(status)
        if not stat.S_ISREG(status.st_mode):
            found.error = "can't be read: this is not a file"
    result.files[found.key] = found


def _follow(found: Found, result: Scan) -> None:
    try:
        result.links.add((found.folder, os.path.dirname(os.readlink(found.key))))
    except OSError:
        return


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _defaults_in(shown: str, folder: str, result: Scan) -> None:
    prefix = "" if shown == "." else os.path.join(shown, "")
    try:
        with os.scandir(folder) as listing:
            entries = [e for e in listing if is_spec_name(e.name) and e.is_file()]
    except OSError:
        result.hidden.add(folder)
        return
    for entry in entries:
        path = os.path.join(folder, entry.name)
        found = Found(path, prefix + entry.name, folder, NO_SIGNATURE, defaults_only=True)
        _add(entry, found, result)
