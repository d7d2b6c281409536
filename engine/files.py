"""Read files of untrusted authors: never a pipe or a device, and never without an end.
Write files that others read: whole, or not at all. Find the files that are shipped with the engine.

The file at a path can change between two looks, so the file that was opened is checked and read.
"""

import os
import stat
from functools import cache
from pathlib import Path

from engine.errors import UsageError

NOT_A_FILE = "this is not a file"
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 64 * 1024
_PACKAGE = Path(__file__).parent


def read_regular(
    path: str | os.PathLike[str],
    most: int,
    *,
    folder: int | None = None,
    follow_symlinks: bool = True,
) -> bytes:
    """The first `most` bytes of a regular file; `folder` is a descriptor that `path` starts from.

    Guarantees: never blocks.
    Errors: OSError; also for anything but a regular file, and without `follow_symlinks` for a link.
    """
    flags = _FLAGS if follow_symlinks else _FLAGS | os.O_NOFOLLOW
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, NOT_A_FILE)
        text = b""
        while len(text) < most and (chunk := os.read(descriptor, min(_CHUNK, most - len(text)))):
            text += chunk
        return text
    finally:
        os.close(descriptor)


def absolute(path: Path) -> Path:
    """`path` from the root of the file system on, links and all.

    Errors: UsageError for a relative one where the working directory was deleted.
    """
    try:
        return path.absolute()
    except FileNotFoundError:
        hint = "cd into one that exists"
        raise UsageError("the working directory was deleted", hint=hint) from None


def write_whole(path: Path, text: str) -> None:
    """Write a text file that others read.

    Guarantees: the path holds its old content or the whole text. Errors: OSError; also for what is
    no file.
    """
    if path.exists() and not path.is_file():
        raise OSError(0, NOT_A_FILE)
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    unfinished = target.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


@cache
def resource_dir(name: str) -> Path:
    """Folder `schemas`, `templates` or `examples`: in a wheel beside the code, else above it."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
