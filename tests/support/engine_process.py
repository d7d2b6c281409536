"""Drive an engine that stays: start it, hear what it says, probe it, and end it."""

import http.client
import json
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from typing import Self

from tests.support.engine import CommandResult, Engine, Process

_URL = re.compile(r"served at (\S+)")
_LONGEST_START = 120.0
_PATIENCE = 60.0


class EngineProcess:
    """`engine reconcile DIR` in the background, until the block ends.

    Its Lease is short, so that the next one needn't wait long for one that was killed.
    """

    def __init__(self, engine: Engine, *arguments: str, ready: bool = True) -> None:
        self._engine = engine
        self._arguments = arguments
        self._wants_ready = ready
        self._changed = threading.Condition()
        self.lines: list[str] = []
        self.process: Process

    def __enter__(self) -> Self:
        self.process = self._engine.process(
            "reconcile", *self._engine.place, *self._place(),
            "--lease-duration", "2s", "--metrics-address", "127.0.0.1:0", "-v",
            *self._arguments,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            if self._wants_ready:
                self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None and self.process.poll() is None:
                self.stop()
        finally:
            self.kill()

    @property
    def text(self) -> str:
        with self._changed:
            return "\n".join(self.lines)

    def wait_for_line(self, words: str, *, times: int = 1, within: float = _PATIENCE) -> str:
        """The line with `words`, once it has been said so often."""
        deadline = time.monotonic() + within
        with self._changed:
            while len(found := [line for line in self.lines if words in line]) < times:
                left = deadline - time.monotonic()
                assert left > 0, f"{words!r} was not said in {within} s:\n" + "\n".join(self.lines)
                self._changed.wait(left)
        return found[-1]

    def probe(self, path: str) -> tuple[int, str]:
        """Status code and body; 0 without an answer."""
        url = _URL.search(self.wait_for_line("served at", within=_LONGEST_START))
        assert url is not None
        try:
            with urllib.request.urlopen(url.group(1) + path, timeout=10) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, http.client.HTTPException) as error:  # broken off, if it ends meanwhile
            return 0, str(error)

    def answer(self, path: str, within: float = _PATIENCE) -> tuple[int, str]:
        """As `probe`, of an engine that serves, but may be slow to get a turn at all."""
        deadline = time.monotonic() + within
        while not (found := self.probe(path))[0]:
            assert time.monotonic() < deadline, f"{path}: {found}\n{self.text}"
        return found

    def wait_until_ready(self, within: float = _LONGEST_START) -> None:
        self.wait_for_probe("/readyz", 200, within)

    def wait_for_probe(self, path: str, status: int, within: float = _PATIENCE) -> str:
        """The body of the first answer with this status."""
        deadline = time.monotonic() + within
        while (found := self.probe(path))[0] != status:
            assert time.monotonic() < deadline, f"{path}: {found}\n{self.text}"
            assert self.process.poll() is None, self.text
            time.sleep(0.05)
        return found[1]

    def metric(self, name: str) -> float:
        """Value of one series, named as it is printed."""
        lines = self.probe("/metrics")[1].splitlines()
        (value,) = [line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")]
        return float(value)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, within: float = _PATIENCE) -> CommandResult:
        """End it. The exit code says whether that went well: what takes too long ends with 130."""
        self.send(number)
        return self.wait(within)

    def wait(self, within: float) -> CommandResult:
        code = self.process.wait(within)
        self._reader.join(5)
        return CommandResult(code, "", self.text)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait()
        self._reader.join(5)

    def _place(self) -> list[str]:
        """Namespace and source; a harness without a namespace leaves both to the engine."""
        namespace = self._engine.namespace
        return ["-n", namespace, "--source", namespace] if namespace else []

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as told:
            for line in told:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()


class Pauses:
    """Processes that were stopped, and when each goes on."""

    def __init__(self) -> None:
        self._until: dict[EngineProcess, float] = {}

    def stop(self, process: EngineProcess, seconds: float) -> None:
        if process not in self._until:
            process.send(signal.SIGSTOP)
            self._until[process] = time.monotonic() + seconds

    def end(self, *, all_of_them: bool = False) -> None:
        for process, until in [*self._until.items()]:
            if all_of_them or time.monotonic() >= until:
                process.send(signal.SIGCONT)
                del self._until[process]


def wait_for_state(engine: Engine, job: str, state: str, within: float = 60.0) -> dict[str, object]:
    """The job's entry in `engine status`, once it is in `state`."""
    deadline = time.monotonic() + within
    while True:
        entry = engine.status().get(job)
        if entry is not None and entry["state"] == state:
            return entry
        assert time.monotonic() < deadline, json.dumps(entry, indent=1)
        time.sleep(0.1)
