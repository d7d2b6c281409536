"""Events as lines: text for people, JSON for log collectors."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from textwrap import indent
from typing import Any, TextIO

from engine.cli import output
from engine.cli.main import report_crashes
from engine.errors import Severity
from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry import events
from engine.telemetry.events import Event, MaskedEvent, mask_event
from engine.telemetry.redact import REDACTOR, Redactor
from engine.times import format_time

REPORT_IT = "this is a defect: report it with -vv"
_MAX_VALUE, _MAX_TRACEBACK = 7_000, 16_000
"""Characters. A line holds its cause twice, and container runtimes split lines at 16 KiB."""
_NAMES = {"key": "job", "ref": "object", "message": "cause"}


class TextPrinter:
    """A line per event; safe to use from several threads.

    With `timed`, each line begins with the time. An output that is gone or closed stops the lines,
    never the engine. `verbose` counts the -v; the second brings the tracebacks of internal errors.
    """

    def __init__(
        self,
        out: TextIO,
        redact: Redactor,
        *,
        verbose: int = 0,
        colour: bool = False,
        timed: bool = False,
    ) -> None:
        self._out = out
        self._redact = redact
        self._verbose = verbose
        self._colour = colour
        self._timed = timed
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write the event's line, if it has one at this verbosity."""
        line = self.line(mask_event(event, self._redact))
        if line and self._timed:
            line = indent(line, f"{format_time(datetime.now(UTC))} ", lambda _: True)
        if line:
            with self._lock, suppress(OSError, ValueError):
                self._out.write(line + "\n")
                self._out.flush()

    def line(self, masked: MaskedEvent) -> str:
        """The line of an event, with its traceback below it."""
        event = masked.event
        if isinstance(event, events.LogEnd):
            return output.sanitize_text(format_event(masked, verbose=True))
        line = output.sanitize_line(format_event(masked, verbose=self._verbose > 0))
        if self._verbose > 1 and isinstance(event, events.InternalError):
            line = f"{line}\n{output.sanitize_text(event.traceback).rstrip()}"
        if self._colour and isinstance(event, events.StateChanged):
            return output.colourise(line, event.state)
        return line

    def close(self) -> None:
        """Nothing is left open."""


class JsonPrinter(TextPrinter):
    """`time`, `level`, `event` and `message` (the line that the text format has) for every event,
    and the event's own fields; its own message, the first real cause, is `cause`.

    Guarantees: a known secret is masked before it is encoded, so that no escape hides it; every
    line is ASCII and one JSON object. An output that is gone stops the lines, never the engine.
    """

    def line(self, masked: MaskedEvent) -> str:
        """The object of an event."""
        event = masked.event
        if not format_event(masked, verbose=self._verbose > 0):
            return ""
        entry: dict[str, Any] = {
            "time": datetime.now(UTC),
            "level": level_of(event),
            "event": type(event).__name__,
        }
        if isinstance(event, events.Notice) and isinstance(event.about, JobKey):
            entry["job"] = str(event.about)
        for name in event.__struct_fields__ if not isinstance(event, events.Notice) else ():
            value = getattr(event, name)
            if value is not None and value != "":
                entry[_NAMES.get(name, output.camel_case(name))] = _plain(name, value)
        entry["message"] = output.truncate_middle(format_event(masked, verbose=True), _MAX_VALUE)
        return output.to_json(entry, ensure_ascii=True, separators=(",", ":"))


@contextmanager
def open_printer(verbose: int, log_format: str, jobs: int | None = None) -> Iterator[TextPrinter]:
    """The listener of events and crashes: the live view on a terminal, of so many jobs; lines
    elsewhere and with -v, with their times where `jobs` isn't known; JSON lines are the same
    everywhere.
    """
    out, colour = sys.stderr, output.wants_colour(sys.stderr)
    if log_format == "json":
        printer: TextPrinter = JsonPrinter(out, REDACTOR, verbose=verbose)
    elif not verbose and out.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from engine.cli.printers.live_view import LiveView  # noqa: PLC0415 - rich is slow to import

        printer = LiveView(out, REDACTOR, colour=colour, jobs=jobs)
    else:
        timed = jobs is None
        printer = TextPrinter(out, REDACTOR, verbose=verbose, colour=colour, timed=timed)
    with closing(printer), report_crashes(printer):
        yield printer


def format_event(masked: MaskedEvent, *, verbose: bool) -> str:
    """One line for an event; "" if only `-v` prints it."""
    event = masked.event
    match event:
        case _ if verbose:
            pass
        case events.JobUnchanged() | events.AttemptFailed():
            return ""
        case events.Notice(detail=True):
            return ""
        case events.SpecsRead() if not _is_first_reading(event):
            return ""
        case events.ObjectPruned(action=action) if action not in ("deleted", "failed", "invalid"):
            return ""
    return _FORMATS[type(event)](event)


def level_of(event: Event) -> str:
    """A job that fails is a warning: the engine works. An error is what the engine can't do."""
    match event:
        case (
            events.InternalError()
            | events.ErrorReported(retrying=False)
            | events.ObjectPruned(action="failed")
        ):
            return "error"
        case events.SpecProblem(problem):
            is_warning = getattr(problem, "severity", None) is Severity.WARNING
            return "warning" if is_warning else "error"
        case (
            events.ObjectPruned(action="invalid")
            | events.StateChanged(state=State.FAILED)
            | events.Notice(warning=True)
            | events.LogEnd()
            | events.ErrorReported()
            | events.AttemptFailed()
            | events.PullPolicyFallback()
        ):
            return "warning"
        case _:
            return "info"


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, int | tuple | datetime):
        return value
    text = str(value)
    return (
        text[-_MAX_TRACEBACK:] if name == "traceback" else output.truncate_middle(text, _MAX_VALUE)
    )


def _is_first_reading(event: events.SpecsRead) -> bool:
    return event.added == event.jobs > 0


def _state_changed(event: events.StateChanged) -> str:
    is_retry = event.attempt > 1 and not event.state.is_final
    about = (f"attempt {event.attempt}" if is_retry else "", event.started_for)
    number = f" ({', '.join(filter(None, about))})" if any(about) else ""
    reason = f" {event.reason}" if event.reason and event.reason.value != event.state.value else ""
    cause = f": {event.message}" if event.message else ""
    return f"{event.key}: {event.state}{number}{reason}{cause}"


def _specs_read(event: events.SpecsRead) -> str:
    counts = output.pluralise(event.jobs, "job"), output.pluralise(event.files, "file")
    words = f"specs read: {' in '.join(counts)}"
    if _is_first_reading(event):
        return words
    return f"{words}; {event.added} added, {event.changed} changed, {event.removed} removed"


def _again(event: events.ErrorReported | events.InternalError) -> str:
    return "; trying again" if event.retrying else ""


_FORMATS: Mapping[type[Any], Callable[[Any], str]] = {
    events.StateChanged: _state_changed,
    events.PullPolicyFallback: lambda e: (
        f"{e.key}: attempt {e.attempt}, {e.container}: pull policy {e.before} failed, next is "
        f"{e.after}: {e.message}"
    ),
    events.JobUnchanged: lambda e: f"{e.key}: {e.state}, unchanged",
    events.JobUnmanaged: lambda e: f"{e.key}: no valid spec any more; the job is no longer managed",
    events.AttemptFailed: lambda e: (
        f"{e.key}: attempt {e.attempt} failed: {e.reason}{f': {e.message}' if e.message else ''}"
    ),
    events.LogEnd: lambda e: "\n".join(f"{e.key} | {line}" for line in e.lines),
    events.ErrorReported: lambda e: f"{f'{e.key}: ' if e.key else ''}{e.message}{_again(e)}",
    events.InternalError: lambda e: (
        f"{e.key or e.component}: internal error: {e.kind} ({REPORT_IT}){_again(e)}"
    ),
    events.Notice: lambda e: f"{e.about}: {e.message}",
    events.SpecsRead: _specs_read,
    events.SpecProblem: lambda e: str(e.problem),
    events.ObjectPruned: lambda e: f"{e.ref} {e.action}: {e.reason}",
    events.LeaderChanged: lambda e: (
        "leading" if e.leads else f"standing by: {e.holder or 'no engine'} leads"
    ),
    events.Ready: lambda _: "ready",
}
