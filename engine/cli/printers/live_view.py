"""The live view on a terminal: counts and jobs are redrawn in place by rich, news scroll above."""

import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from engine.cli.printers.events import TextPrinter, format_event
from engine.cli.printers.table import STATE_COLOURS
from engine.cli.printers.text import format_age, sanitize_line
from engine.durations import format_duration
from engine.refs import JobKey
from engine.status.outcome import Reason, State
from engine.telemetry import events
from engine.telemetry.events import Event, map_text
from engine.telemetry.redact import Redactor

_REDRAW = 0.1
_AGES = 1.0
_LAST_DRAW = 1.0
_MAX_NEWS = 1000
_COUNTED = (
    State.SUCCEEDED,
    State.FAILED,
    State.CANCELLED,
    State.RUNNING,
    State.STARTING,
    State.QUEUED,
)
_UNDER_WAY = (State.RUNNING, State.STARTING, State.QUEUED)
_LISTED = (
    State.FAILED,
    State.RUNNING,
    State.STARTING,
    State.QUEUED,
    State.CANCELLED,
    State.SUCCEEDED,
)
"""What a user acts on comes first."""


@dataclass(frozen=True, slots=True)
class _Row:
    key: JobKey
    state: State
    reason: Reason | None
    message: str
    since: float
    """On the monotonic clock; for a Queued job when it queued."""


@dataclass(slots=True)
class Board:
    """The jobs as last reported, and which of them a window has room for."""

    jobs: int | None = None
    """How many there are, where that is known."""
    began: float | None = None
    """When the work began, on the monotonic clock, if it is to come to an end."""
    _states: dict[JobKey, State] = field(default_factory=dict)
    _rows: dict[JobKey, _Row] = field(default_factory=dict)
    """Of jobs that have changed."""
    _leader: str = ""
    _progress: str = ""

    def apply(self, event: Event, now: float, wall_clock: datetime) -> None:
        """Follow one event."""
        match event:
            case events.StateChanged(key, state, reason, message):
                waited = (wall_clock - event.queued_at).total_seconds() if event.queued_at else 0.0
                self._states[key] = state
                self._rows[key] = _Row(key, state, reason, message, now - max(0.0, waited))
            case events.JobUnchanged(key, state):
                self._states[key] = state
                self._rows.pop(key, None)
            case events.JobUnmanaged(key):
                self._states.pop(key, None)
                self._rows.pop(key, None)
            case events.SpecsRead(_, jobs):
                self.jobs = jobs
            case events.LeaderChanged(leads, holder):
                self._leader = "leading" if leads else f"standing by: {holder or 'no engine'} leads"
            case events.Progress(message):
                self._progress = message

    def render(self, height: int, now: float) -> Group:
        """At most `height` lines: counts, jobs, and how many more there are."""
        count = len(self._rows)
        rows = self._first(max(0, height - 1 if count < height else height - 2))
        shown: list[Text | Table] = [_cell(self._summary(now))]
        if rows:
            shown.append(_table(rows, now))
        if count > len(rows) and height > 1:
            shown.append(_cell(f"  and {count - len(rows)} more"))
        return Group(*shown)

    def _first(self, room: int) -> list[_Row]:
        """As many as there is room for; failures leave two thirds to the jobs under way."""
        order = {state: number for number, state in enumerate(_LISTED)}
        rows = sorted(self._rows.values(), key=lambda row: (order[row.state], row.key))
        under_way = sum(row.state in _UNDER_WAY for row in rows)
        failures = max(room - under_way, room // 3, 1)
        count = sum(row.state is State.FAILED for row in rows)
        return [*rows[:count][:failures], *rows[count:]][:room]

    def _summary(self, now: float) -> str:
        counts = Counter(self._states.values())
        counted = ", ".join(f"{counts[state]} {state}" for state in _COUNTED if counts[state])
        if self.jobs:
            counted = f"{counted or '0'} of {self.jobs}"
        parts = [counted, self._progress]
        if self.began is not None:
            parts.append(format_duration(now - self.began))
        return ", ".join(filter(None, (*parts, self._leader))) or "no jobs"


def _table(rows: list[_Row], now: float) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for justify in "left", "left", "right", "left":
        table.add_column(justify=justify)
    for row in rows:
        name = row.reason.value if row.reason and row.reason.value != row.state.value else ""
        cause = ": ".join(filter(None, (name, row.message)))
        if row.state is State.QUEUED and row.message:  # the quota comes last in a long message
            cause = row.message.partition(" is forbidden: ")[2] or row.message
        cells = (f"  {row.key}", row.state.value, format_age(now - row.since), cause)
        table.add_row(*map(_cell, cells), style=STATE_COLOURS.get(row.state))
    return table


def _cell(text: str) -> Text:
    # Never a plain str, in which rich would read markup.
    spaces = len(text) - len(text.lstrip(" "))
    return Text(" " * spaces + sanitize_line(text), no_wrap=True, overflow="ellipsis")


class LiveView:
    """Drawn by a thread of its own, at most ten times a second; safe to use from several threads.

    Guarantees: the last event is drawn, even if no other one comes. A failure is printed once,
    with its cause, above the board. A terminal that takes nothing blocks that thread alone.
    With `jobs`, their number, the view shows the time and is removed at the end: a table follows.
    Without it the board stays as it was last drawn.
    """

    def __init__(
        self, out: TextIO, redact: Redactor, *, colour: bool, jobs: int | None = None
    ) -> None:
        self._out = out
        self._redact = redact
        self._colour = colour
        self._board = Board(jobs, None if jobs is None else time.monotonic())
        self._text = TextPrinter(out, redact, verbose=False, colour=False, terminal=True)
        self._news: deque[Text] = deque(maxlen=_MAX_NEWS)
        self._condition = threading.Condition()
        self._dirty = self._closed = False
        self._thread: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        """Have the event drawn soon."""
        event = map_text(event, self._redact)
        with self._condition:
            if self._closed:
                return
            self._board.apply(event, time.monotonic(), datetime.now(UTC))
            match event:
                case events.StateChanged(_, State.FAILED | State.CANCELLED as state):
                    line = sanitize_line(format_event(event, verbose=False))
                    self._news.append(Text(line, STATE_COLOURS[state]))
                case events.StateChanged() | events.JobUnmanaged():
                    pass  # the board shows them
                case _ if line := self._text.line(event):
                    self._news.append(Text(line))
            self._dirty = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live view", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def close(self) -> None:
        """Draw for the last time. May be called from a signal handler."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(_LAST_DRAW)

    def _run(self) -> None:
        console = Console(
            file=self._out,
            force_terminal=True,
            color_system="standard" if self._colour else None,
            no_color=False,  # --color=always is stronger than NO_COLOR
            legacy_windows=False,
            highlight=False,
        )
        live = Live(
            console=console,
            auto_refresh=False,
            transient=self._board.began is not None,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        closed = False
        with suppress(OSError, ValueError), live:  # a terminal that is gone ends the view alone
            while not closed:
                with self._condition:
                    self._condition.wait_for(lambda: self._dirty or self._closed, _AGES)
                    self._dirty, closed = False, self._closed
                    news = [*self._news]
                    self._news.clear()
                    board = self._board.render(max(1, console.height - 2), time.monotonic())
                with console:  # one write
                    for text in news:
                        console.print(text, soft_wrap=True)
                    live.update(board, refresh=True)
                with self._condition:
                    self._condition.wait_for(lambda: self._closed, _REDRAW)
