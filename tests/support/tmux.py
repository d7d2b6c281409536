"""A real terminal: a shell in a window of tmux, and what the window shows."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import packages
from tests.support.engine import COMMAND, Engine

Lines = list[str]
PROMPT = "$"


def require_tmux() -> None:
    """Errors: ClusterUnavailable where there is none, and it can't be installed."""
    if shutil.which("tmux") is None:
        packages.check_machine()
        packages.install(["tmux"], lambda _line: None)


class Tmux:
    """One window with a shell; a command `engine` is that of the tests."""

    def __init__(self, folder: Path, engine: Engine, columns: int, rows: int) -> None:
        self._socket = str(folder / "tmux")
        script = folder / "engine"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
        script.chmod(0o755)
        given = engine.environment_of_process()
        misleading = ("TMUX", "NO_COLOR", "COLUMNS", "LINES")
        kept = {name: value for name, value in given.items() if name not in misleading}
        path = f"{folder}:{os.environ['PATH']}"
        self._environment = {**kept, "PATH": path, "PS1": f"{PROMPT} ", "LC_ALL": "C.UTF-8"}
        size = ("-x", str(columns), "-y", str(rows))
        self._run("-f", "/dev/null", "new-session", "-d", *size, "-c", str(folder), "sh", "-i")
        self.wait(lambda lines: lines[:1] == [PROMPT])

    def close(self) -> None:
        self._run("kill-server")

    def type(self, text: str) -> None:
        """And Enter."""
        self._run("send-keys", "-l", text)
        self.press("Enter")

    def press(self, key: str) -> None:
        self._run("send-keys", key)

    def send_signal(self, number: int) -> None:
        """To what runs in the shell."""
        shell = self._run("display-message", "-p", "#{pane_pid}").strip()
        running = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        os.kill(int(running[-1]), number)

    def screen(self) -> Lines:
        """What is in the window, to the last line that isn't empty."""
        return self._capture()

    def history(self) -> Lines:
        """All lines, those above the window included; long lines are whole."""
        return self._capture("-J", "-S", "-")

    @property
    def has_cursor(self) -> bool:
        return self._run("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def wait(self, true: Callable[[Lines], bool], within: float = 120.0) -> Lines:
        """The screen, once it is as wanted."""
        deadline = time.monotonic() + within
        while not true(lines := self.screen()):
            assert time.monotonic() < deadline, "the screen shows\n" + "\n".join(lines)
            time.sleep(0.1)
        return lines

    def wait_for(self, words: str, within: float = 120.0) -> Lines:
        return self.wait(lambda lines: any(words in line for line in lines), within)

    def _capture(self, *options: str) -> Lines:
        text = self._run("capture-pane", "-p", *options)
        return [line.rstrip() for line in text.rstrip("\n").split("\n")]

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@contextmanager
def open_tmux(folder: Path, engine: Engine, columns: int, rows: int) -> Iterator[Tmux]:
    """A window of this size, until the block ends."""
    folder.mkdir()
    window = Tmux(folder, engine, columns, rows)
    try:
        yield window
    finally:
        window.close()
