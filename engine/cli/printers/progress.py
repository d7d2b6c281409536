"""What happens, on stderr: a line per event, plain or JSON, or on a terminal a live view."""

import os
import sys
from typing import Protocol

from engine.cli.printers.json_lines import JsonLines
from engine.cli.printers.lines import Lines
from engine.cli.printers.live import LiveTable
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor

LOG_FORMATS = ("text", "json")


class Progress(Protocol):
    """A listener that is closed at the end."""

    def __call__(self, event: Event) -> None: ...

    def close(self) -> None: ...


def progress(
    redact: Redactor, *, verbose: int, no_colour: bool, log_format: str = "text"
) -> Progress:
    """The live view on a terminal, lines elsewhere and with -v; `json` is the same everywhere.

    `verbose` counts the -v: the second brings the tracebacks of internal errors.
    """
    if log_format == "json":
        return JsonLines(sys.stderr, redact, verbose=verbose > 0)
    terminal = sys.stderr.isatty()
    colour = terminal and not no_colour
    if terminal and not verbose and os.environ.get("TERM") != "dumb":
        return LiveTable(sys.stderr, redact, colour=colour)
    return Lines(sys.stderr, redact, verbose=verbose > 0, colour=colour, tracebacks=verbose > 1)
