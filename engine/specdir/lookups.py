"""Which entries of which folders decide what a path leads to.

A path leads elsewhere as soon as one of its symbolic links is replaced (a mounted ConfigMap, a
checkout of git-sync), or when its last part is removed and made again: those are the folders to
watch, besides what the path leads to.
"""

# No pathlib: the parts of paths are taken one by one here.
# ruff: noqa: PTH112, PTH115, PTH118, PTH120, PTH206

import os
from collections.abc import Iterator

_LONGEST_CHAIN = 40


def lookups(path: str) -> Iterator[tuple[str, str]]:
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
