"""A line per event."""

import threading
from contextlib import suppress
from typing import TextIO

from engine.cli.printers.describe import describe
from engine.cli.printers.text import one_line
from engine.status.outcome import State
from engine.telemetry.events import Event, InternalError, StateChanged
from engine.telemetry.redact import Redactor

_LONGEST = 300
_COLOURS = {
    State.SUCCEEDED: "32",
    State.FAILED: "31",
    State.CANCELLED: "33",
    State.RUNNING: "36",
    State.QUEUED: "33",
}


class Lines:
    """A line per event; safe to use from several threads.

    Without a time of its own: whoever collects lines (the kubelet, journald) stamps them. An
    output that is gone or closed stops the lines, never the engine. `tracebacks` has those of
    internal errors follow their lines.
    """

    def __init__(
        self,
        out: TextIO,
        redact: Redactor,
        *,
        verbose: bool,
        colour: bool,
        tracebacks: bool = False,
    ) -> None:
        self._out = out
        self._redact = redact
        self._verbose = verbose
        self._colour = colour
        self._tracebacks = tracebacks
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        line = self.line(event)
        if self._tracebacks and isinstance(event, InternalError):
            line = f"{line}\n{self._redact(event.traceback).rstrip()}"
        if line:
            with self._lock, suppress(OSError, ValueError):
                self._out.write(line + "\n")
                self._out.flush()

    def line(self, event: Event) -> str:
        line = one_line(self._redact(describe(event, verbose=self._verbose)))
        if len(line) > _LONGEST and not self._verbose:
            line = line[: _LONGEST - 1] + "…"
        return (
            paint(line, event.state) if self._colour and isinstance(event, StateChanged) else line
        )

    def close(self) -> None:
        """Nothing is left open."""


def paint(text: str, state: State) -> str:
    code = _COLOURS.get(state)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
