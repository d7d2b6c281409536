"""What happens, on stderr: a line per change of state, or on a terminal a table that updates."""

import shutil
import sys
import threading
import time
from collections import Counter
from typing import TextIO

from engine.cli.printers.describe import describe
from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry.events import Event, JobUnchanged, PodRemoved, StateChanged
from engine.telemetry.redact import Redactor

_LONGEST = 300
_REDRAW = 0.1
_MOST_ROWS = 12
_COLOURS = {
    State.SUCCEEDED: "32",
    State.FAILED: "31",
    State.CANCELLED: "33",
    State.RUNNING: "36",
    State.QUEUED: "33",
}


class Lines:
    """A line per event; safe to use from several threads."""

    def __init__(self, out: TextIO, redact: Redactor, *, verbose: bool, colour: bool) -> None:
        self._out = out
        self._redact = redact
        self._verbose = verbose
        self._colour = colour
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        text = self._redact(describe(event, verbose=self._verbose))
        if not text:
            return
        line = " ".join(text.split())
        if len(line) > _LONGEST and not self._verbose:
            line = line[: _LONGEST - 1] + "…"
        if self._colour and isinstance(event, StateChanged):
            line = paint(line, event.state)
        with self._lock:
            self._out.write(line + "\n")
            self._out.flush()

    def close(self) -> None:
        """Nothing is left open."""


class LiveTable:
    """Counts by state and the jobs that last changed, redrawn in place."""

    def __init__(self, out: TextIO, redact: Redactor, *, colour: bool) -> None:
        self._out = out
        self._redact = redact
        self._colour = colour
        self._lock = threading.Lock()
        self._states: dict[JobKey, tuple[State, str]] = {}
        self._drawn = 0
        self._last = 0.0
        self._lines = Lines(out, redact, verbose=False, colour=colour)

    def __call__(self, event: Event) -> None:
        with self._lock:
            match event:
                case StateChanged(key, state, _, message, _):
                    self._states.pop(key, None)
                    self._states[key] = (state, message)
                case JobUnchanged(key, state):
                    self._states[key] = (state, "")
                case PodRemoved():
                    return
                case _:
                    self._clear()
                    self._lines(event)
            if time.monotonic() - self._last >= _REDRAW:
                self._draw()

    def close(self) -> None:
        with self._lock:
            self._clear()

    def _draw(self) -> None:
        columns, rows = shutil.get_terminal_size()
        counts = Counter(state for state, _ in self._states.values())
        summary = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
        unfinished = [k for k, (state, _) in self._states.items() if not state.is_final]
        shown = unfinished[-min(_MOST_ROWS, max(1, rows - 4)) :]
        self._clear()
        self._put(summary[: columns - 1])
        for key in shown:
            state, message = self._states[key]
            text = self._redact(f"  {key}  {state.value}  {message}")
            line = text.replace("\n", " ")[: columns - 1]
            self._put(paint(line, state) if self._colour else line)
        self._out.flush()
        self._last = time.monotonic()

    def _put(self, line: str) -> None:
        self._out.write(line + "\n")
        self._drawn += 1

    def _clear(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


def paint(text: str, state: State) -> str:
    code = _COLOURS.get(state)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def progress(redact: Redactor, *, verbose: bool, no_colour: bool) -> Lines | LiveTable:
    """The table on a terminal, lines elsewhere and with -v."""
    terminal = sys.stderr.isatty()
    colour = terminal and not no_colour
    if terminal and not verbose:
        return LiveTable(sys.stderr, redact, colour=colour)
    return Lines(sys.stderr, redact, verbose=verbose, colour=colour)
