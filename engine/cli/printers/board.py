"""What the live view shows: counts, jobs under way and the last ends, kept up event by event."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from engine.cli.printers.text import age, cut, many, one_line, width
from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry.events import (
    Event,
    JobUnchanged,
    JobUnmanaged,
    LeaderChanged,
    SpecFixed,
    SpecProblem,
    StateChanged,
)
from engine.telemetry.redact import Redactor
from engine.telemetry.states import StateCounts

_MOST_ROWS, _MOST_ENDS, _OTHER_LINES = 12, 5, 4
_STATE_WIDTH, _AGE_WIDTH = max(len(state) for state in State), 4
_FILE = re.compile(r"(.+?\.ya?ml)(?::\d+:\d+)?: ")
_WARNING = ": warning: "


@dataclass(frozen=True, slots=True)
class Row:
    """One job as last told; `since` is on the monotonic clock."""

    key: JobKey
    state: State
    message: str
    since: float


@dataclass(slots=True)
class Board:
    """Memory grows with the jobs that are looked after, and with nothing else."""

    redact: Redactor
    _states: StateCounts = field(default_factory=StateCounts)
    _under_way: dict[JobKey, Row] = field(default_factory=dict)
    _ends: deque[Row] = field(default_factory=lambda: deque(maxlen=_MOST_ENDS))
    _bad_files: set[str] = field(default_factory=set)
    _leader: str = ""

    def take(self, event: Event, now: float) -> bool:
        """Whether the event is nothing but a change of the board, and needs no line of its own."""
        self._states(event)
        match event:
            case StateChanged(key, state, reason, message):
                told = message or (reason.value if reason and reason.value != state.value else "")
                self._under_way.pop(key, None)
                row = Row(key, state, told, now)
                if state.is_final:
                    self._ends.append(row)
                else:
                    self._under_way[key] = row
                return True
            case JobUnchanged(key) | JobUnmanaged(key):
                self._under_way.pop(key, None)
                return True
            case SpecProblem(problem):
                if (found := _FILE.match(problem)) and _WARNING not in problem:
                    self._bad_files.add(found[1])
            case SpecFixed(file):
                self._bad_files.discard(file)
            case LeaderChanged(leads, holder):
                self._leader = "leading" if leads else f"standing by, {holder or 'nobody'} leads"
        return False

    @property
    def has_ages(self) -> bool:
        return bool(self._under_way or self._ends)

    def lines(self, columns: int, rows: int, now: float) -> Iterator[tuple[str, State | None]]:
        """What is to be drawn, cut to the terminal: text, and the state that colours it."""
        yield cut(self._summary(), columns), None
        room = max(1, rows - _OTHER_LINES)
        ends = min(len(self._ends), max(0, room - 1))
        under_way = min(_MOST_ROWS, room - ends, len(self._under_way))
        shown = [*islice(reversed(self._under_way.values()), under_way)][::-1]
        shown += [*islice(reversed(self._ends), ends)][::-1]
        names = max((width(str(row.key)) for row in shown), default=0)
        for row in shown:
            key = cut(str(row.key), min(names, columns // 2))
            pad = " " * (min(names, columns // 2) - width(key))
            text = f"  {key}{pad}  {row.state:{_STATE_WIDTH}}  {age(now - row.since):>{_AGE_WIDTH}}"
            told = one_line(self.redact(row.message))
            yield cut(f"{text}  {told}".rstrip(), columns), row.state

    def _summary(self) -> str:
        counts = self._states.counts()
        parts = [f"{count} {state}" for state, count in counts.items() if count]
        if self._bad_files:
            parts.append(f"{many(len(self._bad_files), 'file')} with problems")
        if self._leader:
            parts.append(self._leader)
        return one_line(self.redact(", ".join(parts) or "no jobs"))
