"""Find the spec files below the named paths, without opening any of them.

Every command follows the same rules. A folder is read with all folders below it. Hidden files and
folders are skipped. Links to files are followed, links to folders only where the command line names
them. JobDefaults count from the named paths downwards, or from the defaults' root. Of files that
are read for their JobDefaults alone, nothing else counts.
"""

# No pathlib: a scan makes thousands of paths, and pathlib is many times slower.
# ruff: noqa: PTH110, PTH112, PTH114, PTH115, PTH116, PTH118, PTH119, PTH120

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from os.path import exists, isdir
from pathlib import Path

from msgspec import Struct

from engine.errors import Diagnostic, Severity, SourceLocation, UsageError
from engine.files import NOT_A_FILE, absolute

Signature = tuple[int, ...]
"""Device, inode, size, time of the last write and of the last change; times in nanoseconds."""
NO_SIGNATURE: Signature = ()
_ENDINGS = (".yaml", ".yml")
_LINK_HINT = "name it on the command line, too, or remove it: until then --prune removes no job"


class Root(Struct, frozen=True):
    """A path of the command line."""

    shown: str
    """As it was given: the start of every name in messages."""
    path: str
    """Absolute, links and all."""
    parent_defaults: tuple[str, ...]
    """Absolute paths of the folders above whose JobDefaults hold for it."""
    was_dir: bool
    """Whether it was a folder at first: a file in its place removes none of its jobs."""


class ScannedFile(Struct):
    """A spec file as the walk saw it. Not frozen, for speed: every scan makes thousands."""

    key: str
    """The absolute path."""
    file: str
    """The name in messages."""
    folder: str
    signature: Signature = NO_SIGNATURE
    """Changes with the file; empty if the file can't be seen."""
    root: str = ""
    """The named folder that `folder` is below; empty if it is that itself."""
    error: str = ""
    """Why it can't be read, in the system's words."""
    defaults_only: bool = False


class Scan(Struct):
    """What one walk has seen."""

    files: dict[str, ScannedFile] = {}
    """By absolute path."""
    problems: list[Diagnostic] = []
    """Of folders that can't be read, and of links that aren't followed, below the roots."""
    unreadable_roots: list[Diagnostic] = []
    unseen: set[str] = set()
    """Absolute paths of everything that can't be read."""
    link_targets: set[str] = set()
    """Folders that links to spec files name; the path may hold links itself."""


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether `path` is one of `folders`, or below one."""
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


def make_roots(paths: Iterable[str], defaults_root: Path | None = None) -> tuple[Root, ...]:
    """The roots for paths as the user wrote them; defaults count from `defaults_root` downwards.

    Errors: UsageError if none of the paths is below it: a mistyped root would drop all defaults.
    """
    top = _normal(defaults_root) if defaults_root is not None else None
    roots = tuple(_make_root(Path(path), top) for path in dict.fromkeys(paths))
    if top is not None and not any(_normal(Path(root.path)).is_relative_to(top) for root in roots):
        raise UsageError("none of the named paths is below it", where=f"--defaults-root {top}")
    return roots


def _make_root(given: Path, top: Path | None) -> Root:
    path = absolute(given)
    above = [] if top is None else [p for p in _normal(path).parents if p.is_relative_to(top)]
    return Root(str(given), str(path), tuple(map(str, above)), isdir(path))


def _normal(path: Path) -> Path:
    return Path(os.path.normpath(absolute(path)))


def require_paths(paths: Iterable[str]) -> None:
    """Errors: UsageError if a path doesn't exist, or is relative to a deleted folder."""
    for path in paths:
        if not exists(path):
            absolute(Path(path))
            raise UsageError("no such file or folder", where=path)


def scan(roots: Sequence[Root]) -> Scan:
    """Every spec file of `roots`, each once. Errors: none; OSError becomes part of the result."""
    result = Scan()
    named = frozenset(map(attrgetter("path"), roots))
    defaults_dirs: dict[str, str] = {}
    """The name in messages of each folder of which JobDefaults alone count."""
    for root in roots:
        defaults_dirs.update(zip(root.parent_defaults, root.parent_defaults, strict=True))
        own_dir = os.path.dirname(root.path)
        try:
            is_file = not stat.S_ISDIR(os.stat(root.path).st_mode)
            if is_file and root.was_dir:
                raise NotADirectoryError(errno.ENOTDIR, "it was a folder, and is a file now")
            if is_file:
                _add(None, ScannedFile(root.path, root.shown, own_dir), result)
            else:
                _walk(root, named, result)
        except OSError as error:
            result.unreadable_roots.append(unreadable(root.shown, error))
            result.unseen.add(root.path)
            # While a file is missing, the defaults beside it still hold for its last good version.
            is_file = is_spec_name(os.path.basename(root.path))
        if is_file:
            defaults_dirs.setdefault(own_dir, os.path.dirname(root.shown))
    for folder, shown in defaults_dirs.items():
        _add_defaults_of(shown, folder, result)
    return result


def is_spec_name(name: str) -> bool:
    """Whether a file of this name is taken for a spec."""
    return name.endswith(_ENDINGS) and not name.startswith(".")


def unreadable(file: str, error: OSError) -> Diagnostic:
    """Why a file or folder can't be read, in the system's own words."""
    words = error.strerror or type(error).__name__
    return Diagnostic(SourceLocation(file), f"can't be read: {words}")


def signature_of(path: str) -> Signature:
    """The signature of the file at `path`; empty if there is none."""
    try:
        return _signature(os.stat(path))
    except OSError:
        return NO_SIGNATURE


def _walk(root: Root, named: frozenset[str], result: Scan) -> None:
    """Errors: OSError if the root itself can't be read."""
    folders = [(root.path, "" if root.shown == "." else os.path.join(root.shown, ""))]
    while folders:
        folder, shown = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError as error:
            if folder == root.path:
                raise
            if not isinstance(error, FileNotFoundError):
                result.problems.append(unreadable(shown.removesuffix("/"), error))
                result.unseen.add(folder)
            continue
        start = os.path.join(folder, "")
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append((start + name, f"{shown}{name}/"))
                continue
            is_spec = name.endswith(_ENDINGS)
            if entry.is_symlink() and (isdir(entry.path) or not (is_spec or exists(entry.path))):
                if entry.path not in named:
                    _add_link(entry.path, shown + name, result)
            elif is_spec:
                found = ScannedFile(start + name, shown + name, folder, root=root.path)
                _add(entry, found, result)


def _add_link(path: str, shown: str, result: Scan) -> None:
    """Note a link that isn't followed: the jobs of the folder that was there may still exist."""
    message = f"this link to {'a folder' if isdir(path) else 'nothing'} is not followed"
    result.problems.append(Diagnostic(SourceLocation(shown), message, _LINK_HINT, Severity.WARNING))
    result.unseen.add(path)


def _add(entry: os.DirEntry[str] | None, found: ScannedFile, result: Scan) -> None:
    """Add a file, unless it was removed meanwhile, or is none and wasn't named."""
    if found.key in result.files:
        return
    is_link = os.path.islink(found.key) if entry is None else entry.is_symlink()
    if is_link:
        with suppress(OSError):
            target = os.path.join(found.folder, os.readlink(found.key))
            result.link_targets.add(os.path.dirname(target))
    try:
        status = os.stat(found.key) if entry is None else entry.stat()
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not is_link:
            return
        found.error = error.strerror or type(error).__name__
    else:
        is_regular = stat.S_ISREG(status.st_mode)
        if not (is_regular or is_link or entry is None):
            return
        found.signature = _signature(status)
        found.error = "" if is_regular else NOT_A_FILE
    result.files[found.key] = found


def _signature(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _add_defaults_of(shown: str, folder: str, result: Scan) -> None:
    """Add the files right in `folder`, for their JobDefaults alone."""
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)
    except OSError:
        result.unseen.add(folder)
        return
    for entry in entries:
        if is_spec_name(entry.name) and entry.is_file():
            name = os.path.join(shown, entry.name)
            _add(entry, ScannedFile(entry.path, name, folder, defaults_only=True), result)
