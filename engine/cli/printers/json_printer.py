"""A JSON object per event and line, for whoever collects logs."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TextIO

from engine.cli.printers.text import to_json, truncate_middle
from engine.cli.printers.text_printer import format_event
from engine.errors import Diagnostic, Severity
from engine.refs import JobKey, Ref
from engine.status.outcome import State
from engine.telemetry.events import (
    AttemptFailed,
    DependentRestored,
    ErrorReported,
    Event,
    InternalError,
    LabelsChanged,
    Notice,
    ObjectPruned,
    PodIgnored,
    PullPolicyFallback,
    SpecProblem,
    StateChanged,
    map_text,
)
from engine.telemetry.redact import Redactor
from engine.times import format_time

_LONGEST, _LONGEST_TRACEBACK = 7_000, 16_000
"""Characters. A line tells its cause twice, and container runtimes split lines at 16 KiB."""
_NAMES = {"key": "job", "ref": "object", "message": "cause"}


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
        case SpecProblem(problem):
            is_warning = isinstance(problem, Diagnostic) and problem.severity is Severity.WARNING
            return "warning" if is_warning else "error"
        case ErrorReported(_, _, retrying):
            return "warning" if retrying else "error"
        case InternalError():
            return "error"
        case ObjectPruned(_, action):
            return {"failed": "error", "invalid": "warning"}.get(action, "info")
        case StateChanged(_, State.FAILED):
            return "warning"
        case AttemptFailed() | PullPolicyFallback() | DependentRestored():
            return "warning"
        case LabelsChanged() | PodIgnored():
            return "warning"
        case _:
            return "info"


def _fields_of(event: Event) -> dict[str, Any]:
    found = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if value is None or value == "" or isinstance(event, Notice):
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
        return value[-_LONGEST_TRACEBACK:]
    return truncate_middle(value, _LONGEST)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
