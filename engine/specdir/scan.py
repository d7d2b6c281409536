"""Which spec files there are, and whether they may have changed: a walk that opens no file.

The rules of folders are here, for every command: a folder is read with all below it; hidden files
and folders are passed over; links to files are followed, links to folders only where they are
named on the command line. The JobDefaults of the folder that a named file is in hold for it, and
those of the folders above as far as the defaults' root, if one was named; nothing else of those
files is used.
"""

# No pathlib: a scan makes thousands of paths, and pathlib is many times slower.
# ruff: noqa: PTH114, PTH115, PTH116, PTH118, PTH120

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import Diagnostic, Severity, SourceLocation, UsageError
from engine.files import NOT_A_FILE, absolute

Signature = tuple[int, ...]
"""Device, inode, size, time of the last write and of the last change; times in nanoseconds."""
NO_SIGNATURE: Signature = ()
RECHECK: Signature = (-1,)
_CLOCK_TICK_NS = 20_000_000
_ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Root:
    """A path that was named on the command line."""

    shown: str
    """As it was given: the start of every name in messages."""
    path: str
    """Absolute, links and all."""
    above: tuple[tuple[str, str], ...]
    """Folders above whose JobDefaults hold for it: (name in messages, absolute path)."""
    beside: tuple[str, str]
    """The folder that it is in, for a root that is a file."""


@dataclass(slots=True)
class ScannedFile:
    """A spec file as the walk saw it. Not frozen, for speed: every scan makes thousands."""

    key: str
    """The absolute path."""
    file: str
    """The name in messages."""
    folder: str
    signature: Signature
    """What changes with the file; empty when it can't be seen."""
    root: str = ""
    """The folder that was named and that `folder` is below; empty if it is that itself."""
    error: str = ""
    """Why it can't be read, in the system's words."""
    defaults_only: bool = False
    """Nothing counts of it but its JobDefaults."""


@dataclass(slots=True)
class Scan:
    """What one walk has seen."""

    files: dict[str, ScannedFile] = field(default_factory=dict)
    unreadable_dirs: dict[str, Diagnostic] = field(default_factory=dict)
    """Folders below the roots, by absolute path."""
    unreadable_roots: dict[str, Diagnostic] = field(default_factory=dict)
    """Roots, by absolute path; the message is the cause alone."""
    linked_dirs: dict[str, Diagnostic] = field(default_factory=dict)
    """Links to folders below the roots, by absolute path: nobody knows the jobs behind them."""
    was_dir: dict[str, bool] = field(default_factory=dict)
    """Which of the roots are folders."""
    links: set[tuple[str, str]] = field(default_factory=set)
    """(folder of a link, folder that the link names)."""
    hidden: set[str] = field(default_factory=set)
    """Folders of defaults alone that can't be read."""

    def may_exist_unseen(self, path: str) -> bool:
        """Whether `path` may be there all the same, below what can't be read."""
        unseen = (*self.unreadable_dirs, *self.unreadable_roots, *self.hidden)
        return is_below(path, unseen)


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether `path` is one of `folders`, or below one."""
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


def make_roots(paths: Iterable[str], defaults_root: Path | None = None) -> tuple[Root, ...]:
    """The roots for paths as the user wrote them; defaults count from `defaults_root` downwards.

    Errors: UsageError when none of the paths is below it, for then it was meant otherwise.
    """
    roots = tuple(_make_root(Path(path), defaults_root) for path in dict.fromkeys(paths))
    if defaults_root is not None:
        top = _absolute(defaults_root)
        if not any(_absolute(Path(root.path)).is_relative_to(top) for root in roots):
            raise UsageError("none of the named paths is below it", where=f"--defaults-root {top}")
    return roots


def _make_root(given: Path, defaults_root: Path | None) -> Root:
    path = absolute(given)
    folders = folders_above(path, defaults_root) if defaults_root is not None else []
    above = tuple((folder, folder) for folder in folders)
    return Root(str(given), str(path), above, (str(given.parent), str(path.parent)))


def folders_above(path: Path, top: Path) -> list[str]:
    """Folders above `path`, up to and with `top`; none if it isn't below."""
    highest = _absolute(top)
    return [str(parent) for parent in _absolute(path).parents if parent.is_relative_to(highest)]


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(absolute(path)))


def require_paths(paths: Iterable[str]) -> None:
    """Errors: UsageError when one of the paths isn't there, or nothing is that it starts from."""
    for path in paths:
        if not Path(path).exists():
            absolute(Path(path))
            raise UsageError("no such file or folder", where=path)


def scan(roots: Sequence[Root], was_dir: Mapping[str, bool]) -> Scan:
    """Every spec file of `roots`, each once.

    `was_dir` says which of the roots were folders when last seen: one that has become a file, or
    the other way round, can't be read.
    Guarantees: OSError is never raised.
    """
    result = Scan(was_dir=dict(was_dir))
    beside: dict[tuple[str, str], None] = {}
    for root in roots:
        beside.update(dict.fromkeys(root.above))
        if result.was_dir.get(root.path) is False:
            beside[root.beside] = None
        try:
            is_dir = stat.S_ISDIR(os.stat(root.path).st_mode)
        except OSError as error:
            result.unreadable_roots[root.path] = Diagnostic(
                SourceLocation(root.shown), reason(error)
            )
            continue
        if result.was_dir.setdefault(root.path, is_dir) != is_dir:
            change = "was a file, and is a folder now" if is_dir else "is no folder any more"
            result.unreadable_roots[root.path] = Diagnostic(
                SourceLocation(root.shown), f"this {change}"
            )
        elif is_dir:
            _walk(root, result)
        else:
            folder = os.path.dirname(root.path)
            _add(None, ScannedFile(root.path, root.shown, folder, NO_SIGNATURE), result)
            beside[root.beside] = None
    for root in roots:
        result.linked_dirs.pop(root.path, None)
    for shown, folder in beside:
        _defaults_in(shown, folder, result)
    return result


def scan_defaults(folders: Iterable[str]) -> Scan:
    """Every file right in one of `folders`, for its JobDefaults alone."""
    result = Scan()
    for folder in folders:
        _defaults_in(folder, folder, result)
    return result


def is_spec_name(name: str) -> bool:
    """Whether a file of this name is taken for a spec."""
    return name.endswith(_ENDINGS) and not name.startswith(".")


def reason(error: OSError) -> str:
    """The system's own words."""
    return error.strerror or type(error).__name__


def signature_of(path: str) -> Signature:
    """What changes with the file at `path`; empty when there is none."""
    try:
        return _signature(os.stat(path))
    except OSError:
        return NO_SIGNATURE


def stable_signature(signature: Signature) -> Signature:
    """RECHECK for a file so young that it could change again and have the same signature."""
    now = time.time_ns()
    young = any(abs(now - time_ns) < _CLOCK_TICK_NS for time_ns in signature[3:])
    return RECHECK if young else signature


def _walk(root: Root, result: Scan) -> None:
    folders = [(root.path, "" if root.shown == "." else os.path.join(root.shown, ""))]
    while folders:
        folder, shown = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            _unreadable(root, folder, shown, error, result)
            continue
        start = os.path.join(folder, "")
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append((start + name, f"{shown}{name}/"))
            elif name.endswith(_ENDINGS):
                found = ScannedFile(start + name, shown + name, folder, NO_SIGNATURE, root.path)
                _add(entry, found, result)
            elif entry.is_symlink():
                _note_link(entry, shown + name, result)


def _note_link(entry: os.DirEntry[str], shown: str, result: Scan) -> None:
    """Of a link that isn't to a spec: it may stand where a folder of specs was."""
    try:
        if not stat.S_ISDIR(entry.stat().st_mode):
            return
        what = "to a folder, which is not followed"
    except OSError as error:
        what = f"that can't be followed: {reason(error)}"
    result.linked_dirs[entry.path] = Diagnostic(
        SourceLocation(shown),
        f"this is a link {what}",
        "name it on the command line, too, or remove it: until then --prune removes no job",
        Severity.WARNING,
    )


def _unreadable(root: Root, folder: str, shown: str, error: OSError, result: Scan) -> None:
    if folder == root.path:
        result.unreadable_roots[folder] = Diagnostic(SourceLocation(root.shown), reason(error))
    elif not isinstance(error, FileNotFoundError):
        problem = Diagnostic(
            SourceLocation(shown.removesuffix("/")), f"can't be read: {reason(error)}"
        )
        result.unreadable_dirs[folder] = problem


def _add(entry: os.DirEntry[str] | None, found: ScannedFile, result: Scan) -> None:
    """Take up a file, unless it is gone by now, or no file and nobody named it."""
    if found.key in result.files:
        return
    is_link = os.path.islink(found.key) if entry is None else entry.is_symlink()
    if is_link:
        _follow(found, result)
    try:
        status = os.stat(found.key) if entry is None else entry.stat()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not is_link:
            return
        found.error = reason(error)
    else:
        is_regular = stat.S_ISREG(status.st_mode)
        is_named = entry is None
        if stat.S_ISDIR(status.st_mode) or not (is_link or is_named or is_regular):
            if entry is not None and is_link:
                _note_link(entry, found.file, result)
            return
        found.signature = _signature(status)
        found.error = "" if is_regular else NOT_A_FILE
    result.files[found.key] = found


def _follow(found: ScannedFile, result: Scan) -> None:
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
        found = ScannedFile(path, prefix + entry.name, folder, NO_SIGNATURE, defaults_only=True)
        _add(entry, found, result)
