"""A terminal as far as the live view uses one; colours are dropped, and nothing wraps."""

import io
import os
import re
import threading
import time
from collections.abc import Callable

_TOKEN = re.compile(r"\x1b\[\??(\d*)([AKmhl])|[\r\n]|[^\x1b\r\n]+")


class Screen(io.StringIO):
    """`lines` is what somebody sees who never scrolls; `frames` how often it was written to."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        super().__init__()
        self.columns, self.rows = columns, rows
        self.frames = 0
        self.raw = ""
        self.has_cursor = True
        self._lines = [""]
        self._at = 0
        self._lock = threading.Lock()

    def size(self) -> os.terminal_size:
        return os.terminal_size((self.columns, self.rows))

    def write(self, text: str) -> int:
        with self._lock:
            self.frames += 1
            self.raw += text
            position = 0
            while position < len(text):
                token = _TOKEN.match(text, position)
                assert token is not None, f"not understood: {text[position : position + 20]!r}"
                self._obey(token)
                position = token.end()
        return len(text)

    def _obey(self, token: re.Match[str]) -> None:
        match token[2]:
            case "A":
                self._at = max(0, self._at - int(token[1]))
            case "K":
                self._lines[self._at] = ""
            case "h" | "l":
                self.has_cursor = token[2] == "h"
            case "m":
                pass
            case _ if token[0] == "\n":
                self._at += 1
                self._lines += [""] * (self._at == len(self._lines))
            case _ if token[0] != "\r":
                self._lines[self._at] += token[0]

    @property
    def lines(self) -> list[str]:
        with self._lock:
            return [line for line in self._lines if line]

    def wait(self, true: Callable[[list[str]], bool], seconds: float = 30.0) -> list[str]:
        """The lines, once they are as wanted."""
        deadline = time.monotonic() + seconds
        while not true(self.lines):
            assert time.monotonic() < deadline, f"the screen shows {self.lines}"
            time.sleep(0.01)
        return self.lines
