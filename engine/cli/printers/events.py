"""Events as lines: text for people, JSON for log collectors."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TextIO

from engine.cli.printers.table import colourise
from engine.cli.printers.text import (
    LONGEST_TEXT,
    pluralise,
    sanitize_line,
    sanitize_text,
    to_json,
    truncate_middle,
)
from engine.errors import Diagnostic, Severity
from engine.refs import JobKey, Ref
from engine.status.outcome import State
from engine.telemetry import events
from engine.telemetry.events import Event, map_text
from engine.telemetry.redact import Redactor
from engine.times import format_time

REPORT_IT = "this is a defect: report it with -vv"
_REPORTED_ACTIONS = frozenset({"deleted", "failed", "invalid"})
_MAX_COLUMNS = 300
"""Of a line on a terminal."""
_MAX_VALUE, _MAX_TRACEBACK = 7_000, 16_000
"""Characters. A line holds its cause twice, and container runtimes split lines at 16 KiB."""
_NAMES = {"key": "job", "ref": "object", "message": "cause"}


class TextPrinter:
    """A line per event; safe to use from several threads.

    Lines have no time: log collectors (the kubelet, journald) add it. An output that is gone or
    closed stops the lines, never the engine. Unless `verbose`, lines on a `terminal` are of bounded
    length. With `tracebacks`, internal errors are followed by theirs.
    """

    def __init__(
        self,
        out: TextIO,
        redact: Redactor,
        *,
        verbose: bool,
        colour: bool,
        terminal: bool = False,
        tracebacks: bool = False,
    ) -> None:
        self._out = out
        self._redact = redact
        self._verbose = verbose
        self._colour = colour
        self._longest = _MAX_COLUMNS if terminal and not verbose else LONGEST_TEXT
        self._tracebacks = tracebacks
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write the event's line, if it has one at this verbosity."""
        line = self.line(event)
        if self._tracebacks and isinstance(event, events.InternalError):
            line = f"{line}\n{sanitize_text(self._redact(event.traceback)).rstrip()}"
        if line:
            with self._lock, suppress(OSError, ValueError):
                self._out.write(line + "\n")
                self._out.flush()

    def line(self, event: Event) -> str:
        """The event's line, masked and on one line."""
        line = sanitize_line(format_event(map_text(event, self._redact), verbose=self._verbose))
        line = truncate_middle(line, self._longest)
        if self._colour and isinstance(event, events.StateChanged):
            return colourise(line, event.state)
        return line

    def close(self) -> None:
        """Nothing is left open."""


def format_event(event: Event, *, verbose: bool) -> str:
    """One line for an event; "" if only `-v` prints it."""
    if not verbose and _is_detail(event):
        return ""
    return _FORMATS[type(event)](event)


def _is_detail(event: Event) -> bool:
    match event:
        case events.JobUnchanged() | events.AttemptFailed() | events.PodRemoved():
            return True
        case events.Notice(_, detail):
            return detail
        case events.SpecsRead():
            return not _is_first_reading(event)
        case events.ObjectPruned(_, action):
            return action not in _REPORTED_ACTIONS
        case _:
            return False


def _is_first_reading(event: events.SpecsRead) -> bool:
    return event.added == event.jobs > 0


def _state_changed(event: events.StateChanged) -> str:
    is_retry = event.attempt > 1 and not event.state.is_final
    number = f" (attempt {event.attempt})" if is_retry else ""
    reason = f" {event.reason}" if event.reason and event.reason.value != event.state.value else ""
    return f"{event.key}: {event.state}{number}{reason}{_cause(event.message)}"


def _specs_read(event: events.SpecsRead) -> str:
    words = f"specs read: {pluralise(event.jobs, 'job')} in {pluralise(event.files, 'file')}"
    if _is_first_reading(event):
        return words
    return f"{words}; {event.added} added, {event.changed} changed, {event.removed} removed"


def _cause(message: str) -> str:
    return f": {message}" if message else ""


def _again(event: events.ErrorReported | events.InternalError) -> str:
    return "; trying again" if event.retrying else ""


_FORMATS: Mapping[type[Any], Callable[[Any], str]] = {
    events.StateChanged: _state_changed,
    events.PullPolicyFallback: lambda e: (
        f"{e.key}: attempt {e.attempt}, container {e.container}, image {e.image}: "
        f"pull policy {e.before} failed, next is {e.after}: {e.message}"
    ),
    events.JobUnchanged: lambda e: f"{e.key}: {e.state}, unchanged",
    events.JobUnmanaged: lambda e: f"{e.key}: spec removed; the job is no longer managed",
    events.JobGone: lambda e: (
        f"{e.key}: no spec in source {e.source} any more; the job will be removed"
    ),
    events.AttemptFailed: lambda e: (
        f"{e.key}: attempt {e.attempt} failed: {e.reason}{_cause(e.message)}"
    ),
    events.PodRemoved: lambda e: f"{e.key}: pod {e.pod} deleted: {e.why}",
    events.DependentRestored: lambda e: (
        f"{e.key}: {e.ref} was deleted before its pod had started; created again"
    ),
    events.LabelsChanged: lambda e: (
        f"{e.key}: labels of pod {e.pod} were changed ({', '.join(e.labels)}); "
        "the engine reads it by its name"
    ),
    events.PodIgnored: lambda e: (
        f"{e.key}: pod {e.pod} is in no record of this job; it is left alone"
    ),
    events.ErrorReported: lambda e: f"{f'{e.key}: ' if e.key else ''}{e.message}{_again(e)}",
    events.InternalError: lambda e: (
        f"{e.key or e.component}: internal error: {e.kind} ({REPORT_IT}){_again(e)}"
    ),
    events.Notice: lambda e: f"note: {e.message}",
    events.Progress: lambda _: "",
    events.SpecsRead: _specs_read,
    events.SpecProblem: lambda e: str(e.problem),
    events.SpecFixed: lambda e: f"{e.file}: {'removed' if e.gone else 'fixed'}",
    events.ObjectPruned: lambda e: f"{e.ref} {e.action}: {e.reason}",
    events.LeaderChanged: lambda e: (
        "leading" if e.leads else f"standing by: {e.holder or 'no engine'} leads"
    ),
    events.Ready: lambda _: "ready",
    events.Stopping: lambda e: f"stopping: {e.reason}",
}


class JsonPrinter:
    """`time`, `level`, `event` and `message` (the line that the text format has) for every event,
    and the event's own fields; its own message, the first real cause, is `cause`.

    Guarantees: a known secret is masked before it is encoded, so that no escape hides it; every
    line is ASCII and one JSON object. An output that is gone stops the lines, never the engine.
    """

    def __init__(
        self,
        out: TextIO,
        redact: Redactor,
        *,
        verbose: bool,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._out = out
        self._redact = redact
        self._verbose = verbose
        self._now = now
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write the event as one line, if it has one at this verbosity."""
        if not format_event(event, verbose=self._verbose):
            return
        event = map_text(event, self._redact)
        entry = {
            "level": level_of(event),
            "event": type(event).__name__,
            **_fields_of(event),
            "message": format_event(event, verbose=True),
        }
        entry = {name: _bounded(name, value) for name, value in entry.items()}
        with self._lock, suppress(OSError, ValueError):
            stamp = self._now().astimezone(UTC).isoformat(timespec="milliseconds")
            whole = {"time": stamp.replace("+00:00", "Z"), **entry}
            self._out.write(to_json(whole, ensure_ascii=True, separators=(",", ":")) + "\n")
            self._out.flush()

    def close(self) -> None:
        """Nothing is left open."""


def level_of(event: Event) -> str:
    """A job that fails is a warning: the engine works. An error is what the engine can't do."""
    match event:
        case events.SpecProblem(problem):
            is_warning = isinstance(problem, Diagnostic) and problem.severity is Severity.WARNING
            return "warning" if is_warning else "error"
        case events.ErrorReported(_, _, retrying):
            return "warning" if retrying else "error"
        case events.InternalError():
            return "error"
        case events.ObjectPruned(_, action):
            return {"failed": "error", "invalid": "warning"}.get(action, "info")
        case events.StateChanged(_, State.FAILED):
            return "warning"
        case events.AttemptFailed() | events.PullPolicyFallback() | events.DependentRestored():
            return "warning"
        case events.LabelsChanged() | events.PodIgnored():
            return "warning"
        case _:
            return "info"


def _fields_of(event: Event) -> dict[str, Any]:
    found = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if value is None or value == "" or isinstance(event, events.Notice):
            continue
        if isinstance(value, JobKey | Ref | Diagnostic):
            value = str(value)
        elif isinstance(value, Enum):
            value = value.value
        elif isinstance(value, datetime):
            value = format_time(value)
        found[_NAMES.get(field.name) or _camel(field.name)] = value
    return found


def _bounded(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name == "traceback":
        return value[-_MAX_TRACEBACK:]
    return truncate_middle(value, _MAX_VALUE)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
