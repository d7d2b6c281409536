"""Processes that outlive their starter and are found again by their recorded identity.

A process id alone can be taken by a stranger, so a record also holds the start time and the boot,
and signals go through a pidfd that is opened before the record is compared.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.errors import ComponentFailed
from tests.cluster.files import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

_RECORD_THEN_EXEC = (
    "read -r boot </proc/sys/kernel/random/boot_id; read -r stat </proc/self/stat; "
    'printf "%s\\n%s\\n" "$boot" "$stat" >"$1.new" && '
    'mv "$1.new" "$1" && shift && exec "$@" </dev/null'
)
"""The process writes its own record before it becomes the component: killing the starter at any
instant leaves no process that nobody knows of."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process on one boot of this machine."""

    boot: str
    pid: int
    started: int

    @classmethod
    def read(cls, record: Path) -> Identity | None:
        try:
            boot, stat = record.read_text().splitlines()
            return cls(boot, *_pid_and_start(stat))
        except (OSError, ValueError, IndexError):
            return None

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        return cls(boot_id(), *_pid_and_start(stat))

    def alive(self) -> bool:
        """A zombie counts as dead once its other threads are gone: until then its port is taken."""
        if self.boot != boot_id() or Identity.of(self.pid) != self:
            return False
        process = Path(f"/proc/{self.pid}")
        try:
            is_zombie = (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            return not is_zombie or len([*(process / "task").iterdir()]) > 1
        except OSError:
            return False

    def signal(self, number: signal.Signals) -> None:
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive():
                signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return
        finally:
            os.close(descriptor)


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pid_and_start(stat: str) -> tuple[int, int]:
    pid, _, rest = stat.partition(" ")
    return int(pid), int(rest.rpartition(")")[2].split()[19])


def end(processes: Sequence[Identity], patience: float = 5.0) -> list[Identity]:
    """SIGTERM to all at once, SIGKILL to those that stay; returns what is alive even then."""
    for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
        for process in processes:
            process.signal(number)
        deadline = time.monotonic() + wait
        while any(process.alive() for process in processes) and time.monotonic() < deadline:
            time.sleep(0.01)
    return [process for process in processes if process.alive()]


@dataclass(frozen=True, slots=True)
class Component:
    """One program of the cluster: started, watched and stopped by tests and by the cluster.

    It gets a clean environment: some of the programs take settings from variables.
    `ready` is asked again and again until it returns True; it may raise OSError while the
    component isn't there yet.
    """

    name: str
    argv: Sequence[str]
    ready: Callable[[], bool]
    log: Path
    record: Path
    guard: Path
    """The cluster's lock: nothing starts while somebody else brings the cluster up or down."""
    inside: Callable[[], Sequence[str]] = tuple
    """The command in front that enters the namespace the component lives in."""

    @property
    def identity(self) -> Identity | None:
        return Identity.read(self.record)

    def alive(self) -> bool:
        identity = self.identity
        return identity is not None and identity.alive()

    def start(self, *, wait: bool = True, timeout: float = 120.0, lock: int | None = None) -> None:
        """Start the component unless it runs; with `wait`, return once it serves.

        `lock` is the descriptor of the guard where the caller holds it already. The new process
        holds it as its standard input until its record is written, so that whoever cleans up
        after a killed starter waits for the record.
        Errors: ComponentFailed with the end of the log.
        """
        with exclusive(self.guard) if lock is None else nullcontext(lock) as held:
            if not self.alive():
                self._spawn(held)
        if wait:
            self.wait_ready(timeout)

    def _spawn(self, lock: int) -> None:
        self.record.unlink(missing_ok=True)
        command = ["setsid", "--fork", *self.inside(), "sh", "-c"]
        with self.log.open("ab") as log:
            subprocess.run(
                [*command, _RECORD_THEN_EXEC, "sh", str(self.record), *self.argv],
                stdin=lock,
                stdout=log,
                stderr=log,
                env={"PATH": SYSTEM_PATH},
                cwd="/",
                check=True,
            )

    def wait_ready(self, timeout: float = 120.0) -> None:
        deadline = time.monotonic() + timeout
        recorded_by = time.monotonic() + 20.0
        while True:
            now = time.monotonic()
            identity = self.identity
            alive = identity is not None and identity.alive()
            if not alive and (identity is not None or now > recorded_by):
                raise ComponentFailed(self.name, "ended while starting", self.log_tail())
            try:
                if alive and self.ready():
                    return
            except OSError:
                pass
            if now > deadline:
                cause = f"not ready after {timeout:.0f} s"
                raise ComponentFailed(self.name, cause, self.log_tail())
            time.sleep(0.05)

    def stop(self, patience: float = 5.0) -> None:
        """SIGTERM, then SIGKILL."""
        if identity := self.identity:
            end([identity], patience)

    def kill(self) -> None:
        """SIGKILL, and return once the process is gone."""
        if identity := self.identity:
            identity.signal(signal.SIGKILL)
            end([identity])

    def log_tail(self, lines: int = 12) -> str:
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""
