"""Tests of several processes on one cluster: most run beside each other, some must be alone.

A test that stops a registry, kills the API server or looks at the whole machine is alone among
those that use the cluster; what needs no cluster goes on meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.files import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator


def turns_of(kubeconfig: Path) -> Path:
    """The folder of this cluster's turns: one that whoever may run tests may write."""
    name = f"engine-test-turns-{os.getuid()}"
    return Path(tempfile.gettempdir(), name, f"{zlib.crc32(bytes(kubeconfig.absolute())):08x}")


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Wait for a turn at the cluster of this folder and hold it.

    Guarantees: it ends with its process, however that ends. Who wants to be alone isn't overtaken
    for ever: it holds the entrance while it waits for those inside, which `flock` wouldn't do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    inside = os.open(folder / "inside.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with exclusive(folder / "entrance.lock"):
            fcntl.flock(inside, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(inside)
