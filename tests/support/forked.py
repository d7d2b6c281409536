"""Processes of the engine that start at once: forks of one that has imported all of it.

Python and its imports take most of a second, a fork some milliseconds. A fork is a process as any
other: it has its own streams, environment, signals and exit code. Tests about the start itself run
`python -m engine`.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TextIO

_ROOT = Path(__file__).parents[2]
_LAZY = ("kubernetes.config", "watchdog.observers.inotify", "rich.live", "rich.console")
"""What the engine imports when it needs it."""
_STARTING = threading.Lock()


class ForkedProcess:
    """One invocation of the engine, with the part of Popen's interface that the tests use.

    Errors: OSError, if the process that forks has died.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        *,
        cwd: Path | None = None,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> None:
        self.returncode: int | None = None
        given: list[int] = []
        self.stdout = _stream(stdout, given)
        self.stderr = _stream(stderr, given)
        self._reply, theirs = socket.socketpair()
        with theirs, open(os.devnull, "rb") as stdin:  # noqa: PTH123 - a path of the system
            descriptors = array.array("i", [stdin.fileno(), *given, theirs.fileno()])
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
            with _STARTING:
                server = _server()
            server.sendmsg([b"!"], rights)
        for mine, kind in zip(given, (stdout, stderr), strict=True):
            if kind in (subprocess.PIPE, subprocess.DEVNULL):
                os.close(mine)
        request = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        self._reply.sendall(json.dumps(request).encode() + b"\n")
        self._told = self._reply.makefile("r")
        self.pid = int(self._told.readline())
        self._waiting = threading.Lock()

    def poll(self) -> int | None:
        with self._waiting:
            if self.returncode is None and select.select([self._reply], [], [], 0)[0]:
                self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Errors: TimeoutExpired."""
        with self._waiting:
            if self.returncode is None:
                if not select.select([self._reply], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
                self._end()
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All of what it writes, until it has ended. Errors: TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        written: dict[TextIO, str] = {}
        streams = [stream for stream in (self.stdout, self.stderr) if stream is not None]
        readers = [
            threading.Thread(target=lambda s=stream: written.update({s: s.read()}), daemon=True)
            for stream in streams
            if not stream.closed
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if deadline is None else max(deadline - time.monotonic(), 0))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        self.wait(None if deadline is None else max(deadline - time.monotonic(), 1))
        for stream in streams:
            stream.close()
        out, err = (written.get(s, "") if s else "" for s in (self.stdout, self.stderr))
        return out, err

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        self.returncode = int(self._told.readline())
        self._told.close()
        self._reply.close()


def _stream(kind: int, given: list[int]) -> TextIO | None:
    """Our end of a pipe; the other end, or what else it is to write to, is put into `given`."""
    if kind == subprocess.PIPE:
        ours, theirs = os.pipe()
        given.append(theirs)
        return open(ours, encoding="utf-8")  # noqa: PTH123 - the process owns it
    given.append(os.open(os.devnull, os.O_WRONLY) if kind == subprocess.DEVNULL else kind)
    return None


@cache
def _server() -> socket.socket:
    """The connection to this process's own, which ends when this process does."""
    ours, theirs = socket.socketpair()
    with theirs:
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ).returncode = 0  # no one waits for it
    return ours


# In the process that forks


def _serve(control: socket.socket) -> dict[str, Any]:
    """Fork at each request; return in the fork, with what was asked for."""
    import_all()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        byte, descriptors, _, _ = socket.recv_fds(control, 1, 4)
        if not byte:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            return _fork_watched(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_watched(descriptors: Sequence[int]) -> dict[str, Any]:
    """Fork once more; return in the fork, and report its end in the process that forked."""
    *streams, told = descriptors
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=told) as reply:
        with reply.makefile("r") as lines:
            request: dict[str, Any] = json.loads(lines.readline())
        if pid := os.fork():
            for descriptor in (0, 1, 2, *streams):
                os.close(descriptor)
            reply.sendall(f"{pid}\n".encode())
            status = os.waitpid(pid, 0)[1]
            reply.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os._exit(0)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return request


def _become(request: dict[str, Any]) -> None:
    """The environment of a process that was asked for."""
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [str(_ROOT / "engine/__main__.py"), *request["arguments"]]
    default = os.environ.get("KUBECONFIG", "~/.kube/config")
    for name in ("kubernetes.config", "kubernetes.config.kube_config"):  # read at the import
        sys.modules[name].KUBE_CONFIG_DEFAULT_LOCATION = default  # type: ignore[attr-defined]


def import_all() -> None:
    """Every module of the engine, and what it imports late."""
    engine = importlib.import_module("engine")
    for module in pkgutil.walk_packages(engine.__path__, "engine."):
        if module.name != "engine.__main__":
            importlib.import_module(module.name)
    for name in _LAZY:
        importlib.import_module(name)


if __name__ == "__main__":
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))

    from engine.__main__ import main

    main()
