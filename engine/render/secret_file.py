"""Read a file for `fromFile`: below the spec's folder, whatever links are put there meanwhile."""

import errno
import os
from collections import deque
from contextlib import ExitStack

from engine.files import NOT_A_FILE, read_regular

_MOST_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KUBELETS = ".."
"""A mounted ConfigMap or Secret is made of links: `token` to `..data/token`, `..data` to a folder
`..2026_01_01`. No other hidden file's name begins so."""


class OutsideError(Exception):
    """A link leads out of the spec's folder, or to a hidden file."""


def read_below(root: str, folder: str, name: str, most: int) -> bytes:
    """The first `most` bytes of the file `name` in `folder`, which is `root` or below it.

    Guarantees: each part of the way below `root` is opened by the descriptor of its folder, and
    none through a link; the target of a link is opened the same way. So no swap of a link leads
    elsewhere, and the file that was checked is the file that is read. A pipe is not waited for.
    Errors: OSError, OutsideError.
    """
    with ExitStack() as opened:

        def enter(path: str, below: int | None = None) -> int:
            flags = _FOLDER if below is None else _FOLDER | os.O_NOFOLLOW
            descriptor = os.open(path, flags, dir_fd=below)
            opened.callback(os.close, descriptor)
            return descriptor

        here = enter(root)
        for part in _parts(folder.removeprefix(root)):
            here = enter(part, here)
        way, left, links = [here], deque(_parts(name)), 0
        while left:
            part = left.popleft()
            if part == os.pardir:
                way.pop()
                if not way:
                    raise OutsideError
            elif part.startswith(".") and not part.startswith(_KUBELETS):
                raise OutsideError
            elif (target := _target(part, way[-1])) is not None:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if target.startswith("/"):
                    raise OutsideError
                left.extendleft(reversed(_parts(target)))
            elif left:
                way.append(enter(part, way[-1]))
            else:
                return read_regular(part, most, folder=way[-1], follow_symlinks=False)
        raise OSError(0, NOT_A_FILE)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _target(name: str, folder: int) -> str | None:
    """What a link says; None if it is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
