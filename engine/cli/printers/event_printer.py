"""What happens, on stderr: a line per event, plain or JSON, or on a terminal a live view."""

import sys
from typing import Protocol

from engine.cli.printers.json_printer import JsonPrinter
from engine.cli.printers.live_view import LiveView
from engine.cli.printers.progress import can_redraw
from engine.cli.printers.table import wants_colour
from engine.cli.printers.text_printer import TextPrinter
from engine.telemetry.events import Event
from engine.telemetry.redact import Redactor


class EventPrinter(Protocol):
    """A listener that is closed at the end."""

    def __call__(self, event: Event) -> None:
        """Show the event, or nothing if it isn't worth a line."""

    def close(self) -> None:
        """Leave the output as the shell expects it."""


def make_event_printer(
    redact: Redactor,
    *,
    verbose: int,
    log_format: str = "text",
    color: str = "auto",
    jobs: int | None = None,
) -> EventPrinter:
    """The live view on a terminal, lines elsewhere and with -v; `json` is the same everywhere.

    `verbose` counts the -v: the second brings the tracebacks of internal errors. `jobs` is as in
    LiveView.
    """
    if log_format == "json":
        return JsonPrinter(sys.stderr, redact, verbose=verbose > 0)
    colour = wants_colour(color, sys.stderr)
    if not verbose and can_redraw():
        return LiveView(sys.stderr, redact, colour=colour, jobs=jobs)
    return TextPrinter(
        sys.stderr,
        redact,
        verbose=verbose > 0,
        colour=colour,
        terminal=sys.stderr.isatty(),
        tracebacks=verbose > 1,
    )
