"""What has to be watched so that no change to a source goes unnoticed.

A path leads elsewhere as soon as one of its symbolic links is replaced (a mounted ConfigMap, a
checkout of git-sync), or when its last part is removed and made again: the folders where that
happens are watched besides what the path leads to.
"""

# No pathlib: the parts of paths are taken one by one, and the same few paths at every read.
# ruff: noqa: PTH112, PTH115, PTH118, PTH120, PTH206

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.specdir.scan import Root, is_below

_LONGEST_CHAIN = 40


@dataclass(frozen=True, slots=True)
class WatchSet:
    """Real paths of folders."""

    trees: frozenset[str]
    """Watched with all below them, hidden folders too."""
    folders: frozenset[str]
    """Watched alone; little that happens in them matters."""


def watch_set_of(
    roots: Iterable[Root], config_file: str, links: Iterable[tuple[str, str]]
) -> WatchSet:
    """Everything that decides what the source says; `links` are those among its files."""
    roots = tuple(roots)
    trees = frozenset(os.path.realpath(root.path) for root in roots if os.path.isdir(root.path))
    targets = {os.path.join(folder, target) for folder, target in links}
    paths = {root.path for root in roots} | ({config_file} if config_file else set())
    folders = {folder for path in paths | targets for folder, _ in symlink_chain(path)}
    folders |= targets | {os.path.dirname(path) for path in paths}
    folders |= {folder for root in roots for _, folder in root.above}
    found = {os.path.realpath(folder) for folder in folders if os.path.isdir(folder)}
    return WatchSet(trees, frozenset(f for f in found if not is_below(f, trees)))


def symlink_chain(path: str) -> Iterator[tuple[str, str]]:
    """(folder, name in it) of every link on the way, and of the end of the absolute `path`.

    Where the way breaks off, the missing name is the end. Errors: none; a loop ends, too.
    """
    folder, links = os.sep, 0
    names = _names(path)
    while names:
        name = names.pop()
        if name == os.pardir:
            folder = os.path.dirname(folder)
            continue
        here = os.path.join(folder, name)
        target = _link(here)
        if target is not None:
            yield folder, name
            links += 1
            if links > _LONGEST_CHAIN:
                return
            names += _names(target)
            folder = os.sep if target.startswith(os.sep) else folder
        elif not names or not os.path.isdir(here):
            yield folder, name
            return
        else:
            folder = here


def _names(path: str) -> list[str]:
    return [name for name in reversed(path.split(os.sep)) if name not in ("", os.curdir)]


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
