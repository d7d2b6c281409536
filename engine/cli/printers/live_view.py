"""The live view on a terminal: counts and jobs are redrawn in place by rich, news scroll above."""

import threading
import time
from collections import Counter, deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from msgspec import Struct
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from engine.cli.output import COLOURS, sanitize_line
from engine.cli.printers.events import TextPrinter, format_event
from engine.durations import format_age, format_duration
from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry import events
from engine.telemetry.events import Event, MaskedEvent, StateChanged, mask_event
from engine.telemetry.redact import Redactor

_REDRAW = 0.1
_AGES = 1.0
_LAST_DRAW = 1.0
_MAX_NEWS = 1000
_UNDER_WAY = (State.RUNNING, State.STARTING, State.QUEUED)
_COUNTED = (State.SUCCEEDED, State.FAILED, State.CANCELLED, *_UNDER_WAY)
_ORDER = (State.FAILED, *_UNDER_WAY, State.CANCELLED, State.SUCCEEDED)
"""What a user acts on comes first."""


class Board(Struct):
    """The jobs as last reported, and which of them a window has room for."""

    jobs: int | None = None
    """How many there are, where that is known."""
    began: float | None = None
    """When the work began, on the monotonic clock, if it is to come to an end."""
    _states: dict[JobKey, State] = {}
    _changes: dict[JobKey, tuple[StateChanged, float]] = {}
    """Of jobs that have changed: the last one, and since when, on the monotonic clock."""

    def apply(self, masked: MaskedEvent, now: float, wall_clock: datetime) -> None:
        """Follow one event."""
        match event := masked.event:
            case StateChanged(key, state, queued_at=since):
                waited = (wall_clock - since).total_seconds() if since else 0.0
                self._states[key] = state
                self._changes[key] = event, now - max(0.0, waited)
            case events.JobUnchanged(key, state):
                self._states[key] = state
                self._changes.pop(key, None)
            case events.JobUnmanaged(key):
                self._states.pop(key, None)
                self._changes.pop(key, None)
            case events.SpecsRead(_, jobs):
                self.jobs = jobs

    def render(self, height: int, now: float) -> Group:
        """At most `height` lines: counts, jobs, and how many more there are."""
        count = len(self._changes)
        shown = self._first(max(0, height - 1 if count < height else height - 2))
        table = Table.grid(padding=(0, 2, 0, 0))
        for justify in "left", "left", "right", "left":
            table.add_column(justify=justify)
        for event, since in shown:
            cells = (f"  {event.key}", event.state, format_age(now - since), _cause(event))
            table.add_row(*map(_cell, cells), style=COLOURS.get(event.state))
        more = [_cell(f"  and {count - len(shown)} more")] if count > len(shown) else []
        return Group(_cell(self._summary(now)), *([table] if shown else []), *more[: height - 1])

    def _first(self, room: int) -> list[tuple[StateChanged, float]]:
        """As many as there is room for; failures leave two thirds to the jobs under way."""
        changes = sorted(self._changes.values(), key=lambda c: (_ORDER.index(c[0].state), c[0].key))
        states = Counter(event.state for event, _ in changes)
        failed = states[State.FAILED]
        failures = max(room - sum(map(states.__getitem__, _UNDER_WAY)), room // 3, 1)
        return [*changes[:failed][:failures], *changes[failed:]][:room]

    def _summary(self, now: float) -> str:
        counts = Counter(self._states.values())
        counted = ", ".join(f"{counts[state]} {state}" for state in _COUNTED if counts[state])
        if self.jobs:
            counted = f"{counted or '0'} of {self.jobs}"
        time_passed = "" if self.began is None else format_duration(now - self.began)
        return ", ".join(filter(None, (counted, time_passed))) or "no jobs"


def _cause(event: StateChanged) -> str:
    if event.state is State.QUEUED and event.message:  # the quota comes last in a long message
        return event.message.partition(" is forbidden: ")[2] or event.message
    name = event.reason.value if event.reason and event.reason.value != event.state.value else ""
    return ": ".join(filter(None, (name, event.message)))


def _cell(text: str) -> Text:
    # Never a plain str, in which rich would read markup.
    spaces = len(text) - len(text.lstrip(" "))
    return Text(" " * spaces + sanitize_line(text), no_wrap=True, overflow="ellipsis")


class LiveView(TextPrinter):
    """Drawn by a thread of its own, at most ten times a second; safe to use from several threads.

    Guarantees: the last event is drawn, even if no other one comes. A failure is printed once,
    with its cause, above the board. A terminal that takes nothing blocks that thread alone.
    With `jobs`, their number, the view shows the time and is removed at the end: a table follows.
    Without it the board stays as it was last drawn.
    """

    def __init__(
        self, out: TextIO, redact: Redactor, *, colour: bool, jobs: int | None = None
    ) -> None:
        super().__init__(out, redact)
        self._board = Board(jobs, None if jobs is None else time.monotonic())
        self._news: deque[Text] = deque(maxlen=_MAX_NEWS)
        self._condition = threading.Condition()
        self._dirty = self._closed = False
        console = Console(
            file=out,
            force_terminal=True,
            color_system="standard" if colour else None,
        )
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=jobs is not None,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._thread = threading.Thread(target=self._run, name="live view", daemon=True)

    def __call__(self, heard: Event) -> None:
        """Have the event drawn soon."""
        masked = mask_event(heard, self._redact)
        with self._condition:
            if self._closed:
                return
            self._board.apply(masked, time.monotonic(), datetime.now(UTC))
            match masked.event:
                case StateChanged(state=State.FAILED | State.CANCELLED as state):
                    line = sanitize_line(format_event(masked, verbose=False))
                    self._news.append(Text(line, COLOURS[state]))
                case StateChanged() | events.JobUnmanaged():
                    pass  # the board shows them
                case _ if line := self.line(masked):
                    self._news.append(Text(line))
            self._dirty = True
            if self._thread.ident is None:
                self._thread.start()
            self._condition.notify_all()

    def close(self) -> None:
        """Draw for the last time. May be called from a signal handler."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread.ident is not None:
            self._thread.join(_LAST_DRAW)

    def _run(self) -> None:
        console, closed = self._live.console, False
        with suppress(OSError, ValueError), self._live:  # a terminal that is gone ends the view
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
                    self._live.update(board, refresh=True)
                with self._condition:
                    self._condition.wait_for(lambda: self._closed, _REDRAW)
