"""Read files that others may have put there: never a pipe or a device, and never without an end.

What is at a path can change between a look and the next: what was opened is judged and read.
"""

import os
import stat

NOT_A_FILE = "this is not a file"
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 64 * 1024


def read_regular(
    path: str | os.PathLike[str],
    most: int,
    *,
    folder: int | None = None,
    follow_symlinks: bool = True,
) -> bytes:
    """The first `most` bytes of a regular file; `folder` is a descriptor that `path` starts from.

    Guarantees: waits for nobody.
    Errors: OSError; also for whatever is no regular file, and with `follow_symlinks` off for a
    link.
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
