"""Run the engine with as much memory as its pod has by default: `python -m tests.support.bounded`.

The limit is on private memory that may be written (RLIMIT_DATA): what a cgroup of this size would
count, and the memory of the interpreter's own code besides. Stacks of threads are small, because
all of a stack counts here and only its used part there.
"""

import os
import resource
import runpy
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_MIB = 512
COMMAND = (sys.executable, "-m", "tests.support.bounded")
PEAK = "BOUNDED_PEAK"
"""The variable that names a file for the most memory that was held, in MiB."""
_STACK = 1024 * 1024


def peak_mib(pid: int | str = "self") -> float:
    """The most that a process has held so far."""
    return _kib("VmHWM", pid) / 1024


@contextmanager
def bounded() -> Iterator[None]:
    """This process, which has more to do, may take no more than that beside what it has."""
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _kib("VmData", "self") * 1024 + LIMIT_MIB * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def _kib(name: str, pid: int | str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(value)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    finally:
        if path := os.environ.get(PEAK):
            Path(path).write_text(f"{peak_mib():.1f}")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_MIB * 2**20, LIMIT_MIB * 2**20))
    threading.stack_size(_STACK)
    with _told():
        runpy.run_module("engine", run_name="__main__", alter_sys=True)
