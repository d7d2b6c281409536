"""The live view on a terminal: a board that is redrawn in place, lines of news above it."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from engine.cli.printers.board import Board
from engine.cli.printers.lines import Lines, paint
from engine.cli.printers.text import width
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor

_REDRAW = 0.1
_AGES = 1.0
_MOST_NEWS = 1000
_LAST_DRAW = 1.0
_FALLBACK_SIZE = os.terminal_size((80, 24))

Size = Callable[[], os.terminal_size]


class LiveTable:
    """Redrawn by a thread of its own, at most ten times a second; safe to use from several threads.

    Guarantees: what the last event changed is drawn, whether or not another one comes; a terminal
    that takes nothing keeps nobody waiting but that thread. `close` clears the board.
    """

    def __init__(
        self, out: TextIO, redact: Redactor, *, colour: bool, size: Size | None = None
    ) -> None:
        self._out = out
        self._colour = colour
        self._size = size or (lambda: _size_of(out))
        self._board = Board(redact)
        self._lines = Lines(out, redact, verbose=False, colour=colour)
        self._news: deque[str] = deque(maxlen=_MOST_NEWS)
        self._drawn: list[int] = []
        self._condition = threading.Condition()
        self._dirty = self._closed = False
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        with self._condition:
            if self._closed:
                return
            if not self._board.take(event, time.monotonic()) and (line := self._lines.line(event)):
                self._news.append(line)
            self._dirty = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live view", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(_LAST_DRAW)

    def _run(self) -> None:
        closed = False
        while not closed:
            with self._condition:
                wait = _AGES if self._board.has_ages else None
                self._condition.wait_for(lambda: self._dirty or self._closed, wait)
                self._dirty, closed = False, self._closed
                text = self._frame(closed=closed)
            with suppress(OSError, ValueError):
                self._out.write(text)
                self._out.flush()
            with self._condition:
                self._condition.wait_for(lambda: self._closed, _REDRAW)

    def _frame(self, *, closed: bool) -> str:
        """Everything from clearing the last frame on, to be written at once."""
        columns, rows = self._size()
        parts = [self._clear(max(1, columns)), *(f"{line}\n" for line in self._news)]
        self._news.clear()
        if not closed:
            for text, state in self._board.lines(max(1, columns - 1), rows, time.monotonic()):
                self._drawn.append(width(text))
                parts.append(f"{paint(text, state) if self._colour and state else text}\n")
        return "".join(parts)

    def _clear(self, columns: int) -> str:
        """A terminal that became narrower since has wrapped what was drawn."""
        above = sum(max(1, -(-taken // columns)) for taken in self._drawn)
        self._drawn.clear()
        return f"\x1b[{above}A\x1b[J" if above else ""


def _size_of(out: TextIO) -> os.terminal_size:
    """Of the terminal that is drawn on: stdout may be a file."""
    try:
        found = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        return _FALLBACK_SIZE
    return found if found.columns and found.lines else _FALLBACK_SIZE
