"""The live view on a terminal: the jobs' states redrawn in place, lines of news above them."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TextIO

from engine.cli.printers.text import (
    display_width,
    format_age,
    one_line,
    pluralise,
    truncate,
    truncate_middle,
)
from engine.cli.printers.text_printer import TextPrinter, colourise
from engine.errors import Diagnostic, Severity
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
    map_text,
)
from engine.telemetry.redact import Redactor
from engine.telemetry.states import StateCounts

_REDRAW = 0.1
_AGES = 1.0
_MAX_NEWS = 1000
_LAST_DRAW = 1.0
_FALLBACK_SIZE = os.terminal_size((80, 24))
_MAX_ROWS, _MAX_ENDS, _OTHER_LINES = 12, 5, 4
_STATE_WIDTH, _AGE_WIDTH = max(len(state) for state in State), 4
_SPEC_FILES = (".yaml", ".yml")

Size = Callable[[], os.terminal_size]


@dataclass(frozen=True, slots=True)
class Row:
    """One job as last told; `since` is on the monotonic clock."""

    key: JobKey
    state: State
    message: str
    since: float


@dataclass(slots=True)
class LiveState:
    """Counts, jobs under way and the last ends; grows with the managed jobs, and nothing else."""

    _states: StateCounts = field(default_factory=StateCounts)
    _under_way: dict[JobKey, Row] = field(default_factory=dict)
    _ends: deque[Row] = field(default_factory=lambda: deque(maxlen=_MAX_ENDS))
    _bad_files: set[str] = field(default_factory=set)
    _leader: str = ""

    def apply(self, event: Event, now: float) -> bool:
        """Whether the event only changes this state, and needs no line of its own."""
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
            case SpecProblem(Diagnostic(where, severity=Severity.ERROR)):
                if where.file.endswith(_SPEC_FILES):
                    self._bad_files.add(where.file)
            case SpecFixed(file):
                self._bad_files.discard(file)
            case LeaderChanged(leads, holder):
                self._leader = "leading" if leads else f"standing by, {holder or 'nobody'} leads"
        return False

    @property
    def has_ages(self) -> bool:
        """Whether something that is drawn grows older."""
        return bool(self._under_way or self._ends)

    def lines(self, columns: int, rows: int, now: float) -> Iterator[tuple[str, State | None]]:
        """What is to be drawn, cut to the terminal: text, and the state that colours it."""
        yield truncate(self._summary(), columns), None
        room = max(1, rows - _OTHER_LINES)
        ends = min(len(self._ends), max(0, room - 1))
        under_way = min(_MAX_ROWS, room - ends, len(self._under_way))
        shown = [*islice(reversed(self._under_way.values()), under_way)][::-1]
        shown += [*islice(reversed(self._ends), ends)][::-1]
        names = max((display_width(str(row.key)) for row in shown), default=0)
        for row in shown:
            key = truncate(one_line(str(row.key)), min(names, columns // 2))
            pad = " " * (min(names, columns // 2) - display_width(key))
            age = format_age(now - row.since)
            text = f"  {key}{pad}  {row.state:{_STATE_WIDTH}}  {age:>{_AGE_WIDTH}}"
            room = max(0, columns - display_width(text) - 2)
            told = truncate_middle(one_line(row.message), room)
            yield truncate(f"{text}  {told}".rstrip(), columns), row.state

    def _summary(self) -> str:
        counts = self._states.counts()
        parts = [f"{count} {state}" for state, count in counts.items() if count]
        if self._bad_files:
            parts.append(f"{pluralise(len(self._bad_files), 'file')} with problems")
        if self._leader:
            parts.append(self._leader)
        return one_line(", ".join(parts) or "no jobs")


class LiveView:
    """Redrawn by a thread of its own, at most ten times a second; safe to use from several threads.

    Guarantees: what the last event changed is drawn, whether or not another one comes; a terminal
    that takes nothing keeps nobody waiting but that thread. `close` clears what is drawn.
    """

    def __init__(
        self, out: TextIO, redact: Redactor, *, colour: bool, size: Size | None = None
    ) -> None:
        self._out = out
        self._redact = redact
        self._colour = colour
        self._size = size or (lambda: _size_of(out))
        self._state = LiveState()
        self._text = TextPrinter(out, redact, verbose=False, colour=colour, terminal=True)
        self._news: deque[str] = deque(maxlen=_MAX_NEWS)
        self._drawn: list[int] = []
        self._condition = threading.Condition()
        self._dirty = self._closed = False
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        """Have the event drawn soon."""
        event = map_text(event, self._redact)
        with self._condition:
            if self._closed:
                return
            if not self._state.apply(event, time.monotonic()) and (line := self._text.line(event)):
                self._news.append(line)
            self._dirty = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live view", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def close(self) -> None:
        """Draw the last lines and clear the rest."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(_LAST_DRAW)

    def _run(self) -> None:
        closed = False
        while not closed:
            with self._condition:
                wait = _AGES if self._state.has_ages else None
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
            for text, state in self._state.lines(max(1, columns - 1), rows, time.monotonic()):
                self._drawn.append(display_width(text))
                parts.append(f"{colourise(text, state) if self._colour and state else text}\n")
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
