"""What the live view knows of the jobs, and which of it a window has room for. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nsmallest

from engine.cli.printers.text import (
    display_width,
    format_age,
    one_line,
    pluralise,
    truncate,
    truncate_middle,
)
from engine.durations import format_duration
from engine.errors import Diagnostic, Severity
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from engine.telemetry.events import (
    Event,
    JobUnchanged,
    JobUnmanaged,
    LeaderChanged,
    Progress,
    SpecFixed,
    SpecProblem,
    SpecsRead,
    StateChanged,
)
from engine.telemetry.states import StateCounts

_COUNTED = (
    State.SUCCEEDED,
    State.FAILED,
    State.CANCELLED,
    State.RUNNING,
    State.STARTING,
    State.QUEUED,
)
_LISTED = (
    State.FAILED,
    State.RUNNING,
    State.STARTING,
    State.QUEUED,
    State.CANCELLED,
    State.SUCCEEDED,
)
"""What somebody has to look at comes first, what is over and well last."""
_UNDER_WAY = (State.RUNNING, State.STARTING, State.QUEUED)
_STATE_WIDTH, _AGE_WIDTH = max(map(len, State)), 4
_NARROW = 50
"""Columns below which a row has room for a name and a state alone."""
_MOST_QUOTA_LINES = 3
_SPEC_FILES = (".yaml", ".yml")

Line = tuple[str, State | None]
"""A line of the view, and the state that colours it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One job as last told; `since` is on the monotonic clock, for a queued one when it queued."""

    key: JobKey
    state: State
    reason: Reason | None
    message: str
    since: float

    @property
    def cause(self) -> str:
        """Reason and message, as far as the state doesn't say it; of a quota's refusal its end."""
        reason = self.reason.value if self.reason and self.reason.value != self.state.value else ""
        if self.state is State.QUEUED and self.message:
            return self.message.partition(" is forbidden: ")[2] or self.message
        return ": ".join(filter(None, (reason, self.message)))


@dataclass(slots=True)
class LiveState:
    """Grows with the managed jobs, and with nothing else."""

    jobs: int | None = None
    """How many there are, where that is known."""
    began: float | None = None
    """When the work began, on the monotonic clock, if it is to come to an end."""
    _states: StateCounts = field(default_factory=StateCounts)
    _rows: dict[State, dict[JobKey, Row]] = field(
        default_factory=lambda: {state: {} for state in State}
    )
    _bad_files: set[str] = field(default_factory=set)
    _leader: str = ""
    _progress: str = ""

    def apply(self, event: Event, now: float, wall_clock: datetime) -> None:
        """Follow one event."""
        self._states(event)
        match event:
            case StateChanged(key, state, reason, message):
                self._forget(key)
                waited = (wall_clock - event.queued_at).total_seconds() if event.queued_at else 0.0
                row = Row(key, state, reason, message, now - max(0.0, waited))
                self._rows[state][key] = row
            case JobUnchanged(key) | JobUnmanaged(key):
                self._forget(key)
            case SpecsRead(_, jobs):
                self.jobs = jobs
            case SpecProblem(Diagnostic(where, severity=Severity.ERROR)):
                if where.file.endswith(_SPEC_FILES):
                    self._bad_files.add(where.file)
            case SpecFixed(file):
                self._bad_files.discard(file)
            case LeaderChanged(leads, holder):
                self._leader = "leading" if leads else f"standing by, {holder or 'nobody'} leads"
            case Progress(message):
                self._progress = message

    @property
    def has_ages(self) -> bool:
        """Whether something that is drawn grows older."""
        return self.began is not None or any(self._rows.values())

    def lines(self, columns: int, height: int, now: float) -> Iterator[Line]:
        """At most `height` lines of at most `columns`: counts, quotas, jobs, how many more."""
        yield truncate(self._summary(now), columns), None
        room = height - 1
        for text in self._quota_lines(now)[: min(_MOST_QUOTA_LINES, height // 6)]:
            yield truncate(one_line(text), columns), State.QUEUED
            room -= 1
        count = sum(map(len, self._rows.values()))
        shown = self._first(max(0, room - 1 if count > room else room))
        yield from _table(shown, columns, now)
        if count > len(shown) and room > 0:
            yield truncate(f"  and {count - len(shown)} more", columns), None

    def _forget(self, key: JobKey) -> None:
        for rows in self._rows.values():
            rows.pop(key, None)

    def _first(self, room: int) -> list[Row]:
        """As many as there is room for; failures leave two thirds to what is under way."""
        under_way = sum(len(self._rows[state]) for state in _UNDER_WAY)
        shown: list[Row] = []
        for state in _LISTED:
            left = room - len(shown)
            if state is State.FAILED:
                left = min(room, max(room - under_way, room // 3, 1))
            shown += nsmallest(left, self._rows[state].values(), key=lambda row: row.key)
        return shown

    def _quota_lines(self, now: float) -> list[str]:
        """One for each namespace where several jobs wait for a quota, the longest wait first."""
        waiting: dict[str, list[Row]] = {}
        for row in self._rows[State.QUEUED].values():
            if row.reason is Reason.QUOTA_EXCEEDED:
                waiting.setdefault(row.key.namespace, []).append(row)
        lines = []
        for rows in waiting.values():
            first = min(rows, key=lambda row: (row.since, row.key))
            if len(rows) > 1:
                age = format_age(now - first.since)
                words = f"{len(rows)} wait for a quota, first {first.key}, for {age}"
                lines.append((first.since, words))
        return [text for _, text in sorted(lines)]

    def _summary(self, now: float) -> str:
        counts = self._states.counts()
        counted = ", ".join(f"{counts[state]} {state}" for state in _COUNTED if counts[state])
        if self.jobs:
            counted = f"{counted or '0'} of {self.jobs}"
        parts = [*filter(None, (counted, self._progress))]
        if self.began is not None:
            parts.append(format_duration(now - self.began))
        if self._bad_files:
            parts.append(f"{pluralise(len(self._bad_files), 'file')} with problems")
        if self._leader:
            parts.append(self._leader)
        return one_line(", ".join(parts) or "no jobs")


def _table(rows: Iterable[Row], columns: int, now: float) -> Iterator[Line]:
    shown = [(row, one_line(str(row.key))) for row in rows]
    longest = max((display_width(name) for _, name in shown), default=0)
    is_narrow = columns < _NARROW
    width = min(longest, columns - _STATE_WIDTH - 4 if is_narrow else columns // 2)
    for row, name in shown:
        cut = truncate_middle(name, width)
        text = f"  {cut}{' ' * (width - display_width(cut))}  {row.state:{_STATE_WIDTH}}"
        if not is_narrow:
            text += f"  {format_age(now - row.since):>{_AGE_WIDTH}}"
            cause = truncate_middle(one_line(row.cause), columns - display_width(text) - 2)
            text += f"  {cause}"
        yield truncate(text.rstrip(), columns), row.state
