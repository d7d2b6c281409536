"""An engine that stays: started, waited for, and stopped."""

import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.place import Place
from benchmarks.process import ENGINE, stop

_LONGEST_START = 180.0
_OK = 200


@contextmanager
def staying_engine(place: Place, *specs: str) -> Iterator[int]:
    """Its process id, once it is ready; `specs` says where they are, and what else is asked.

    Errors: RuntimeError with what it said if it never is.
    """
    port = free_port()
    metrics = f"127.0.0.1:{port}"
    command = [ENGINE, "reconcile", *specs, "--metrics-address", metrics]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=said, env={**os.environ, **place.environment}
        )
        try:
            deadline = time.monotonic() + _LONGEST_START
            while not _is_ready(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    said.seek(0)
                    words = said.read()[-500:].strip()
                    raise RuntimeError(f"an engine that stays doesn't get ready: {words}")
                time.sleep(0.1)
            yield process.pid
        finally:
            stop(process)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:
            return bool(answer.status == _OK)
    except (OSError, urllib.error.URLError):
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
