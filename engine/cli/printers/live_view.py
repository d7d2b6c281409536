"""The live view on a terminal: counts and jobs redrawn in place, lines of news above them."""

import os
import signal
import termios
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

from engine.cli.printers.live_state import Line, LiveState
from engine.cli.printers.table import STATE_COLOURS
from engine.cli.printers.text import display_width, one_line
from engine.cli.printers.text_printer import TextPrinter, format_event
from engine.status.outcome import State
from engine.telemetry.events import Event, JobUnmanaged, StateChanged, map_text
from engine.telemetry.redact import Redactor

if TYPE_CHECKING:
    from rich.console import OverflowMethod
    from rich.text import Text

_REDRAW = 0.1
_AGES = 1.0
_MAX_NEWS = 1000
_BACKGROUND = 0.5
"""Seconds after which the terminal may be this process's again: no signal says so."""
_LAST_DRAW = 1.0
_BELOW_WITH_CURSOR = b"\n\x1b[?25h"
_FALLBACK_SIZE = os.terminal_size((80, 24))

Size = Callable[[], os.terminal_size]


class LiveView:
    """Drawn by a thread of its own, at most ten times a second; safe to use from several threads.

    Guarantees: what the last event changed is drawn, whether or not another one comes; a failure is
    told once, with its cause, above what is redrawn, and stays there; a terminal that takes nothing
    keeps nobody waiting but that thread. `close` gives the terminal back as it was. In the
    background nothing is drawn: the terminal is the shell's then, until `fg`.
    With `jobs`, as many as there are, the view counts the time, and goes in the end: a table of
    them follows. Else it stands as it was last drawn.
    """

    def __init__(
        self,
        out: TextIO,
        redact: Redactor,
        *,
        colour: bool,
        jobs: int | None = None,
        size: Size | None = None,
    ) -> None:
        self._out = out
        self._redact = redact
        self._colour = colour
        self._goes = jobs is not None
        self._size = size or (lambda: _size_of(out))
        self._state = LiveState(jobs, None if jobs is None else time.monotonic())
        self._text = TextPrinter(out, redact, verbose=False, colour=False, terminal=True)
        self._news: deque[Line] = deque(maxlen=_MAX_NEWS)
        self._condition = threading.Condition()
        self._dirty = self._closed = False
        self._display: _Display | None = None
        """What is drawn on; None as long as the terminal is somebody else's."""
        self._thread: threading.Thread | None = None
        self._restore_echo: Callable[[], None] = lambda: None

    def __call__(self, event: Event) -> None:
        """Have the event drawn soon."""
        event = map_text(event, self._redact)
        with self._condition:
            if self._closed:
                return
            self._state.apply(event, time.monotonic(), datetime.now(UTC))
            match event:
                case StateChanged(_, State.FAILED | State.CANCELLED as state):
                    self._news.append((one_line(format_event(event, verbose=False)), state))
                case StateChanged() | JobUnmanaged():
                    pass  # counted, and listed as far as there is room
                case _ if line := self._text.line(event):
                    self._news.append((line, None))
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
            self._restore_echo()

    def stop_process(self) -> None:
        """Stop, as Ctrl-Z has it, and give the terminal to the shell until this process goes on.

        For the handler of SIGTSTP. What was drawn stays; the view is drawn anew below it. Without a
        shell that could wake it, nothing stops: that is the kernel's rule for the signal's default.
        """
        self._restore_echo()
        with suppress(OSError, ValueError):
            os.write(self._out.fileno(), _BELOW_WITH_CURSOR if self._display else b"")
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        with self._condition:
            self._display, self._restore_echo = None, lambda: None
            self._dirty = True
            self._condition.notify_all()

    def _run(self) -> None:
        closed = False
        while not closed:
            with self._condition:
                wait = _AGES if self._state.has_ages else None
                self._condition.wait_for(lambda: self._dirty or self._closed, wait)
                self._dirty, closed = False, self._closed
                if not _is_in_foreground(self._out):
                    self._display, self._dirty = None, True
                    self._condition.wait_for(lambda: self._closed, _BACKGROUND)
                    continue
                display = self._display
                columns, rows = self._size()
                height = max(1, rows - max(1, rows // 8))
                lines = [*self._state.lines(max(1, columns - 1), height, time.monotonic())]
                news = [*self._news]
                self._news.clear()
            if display is None:
                display = self._display = self._open_display()
            display.draw(news, lines, columns, rows)
            with self._condition:
                self._condition.wait_for(lambda: self._closed, _REDRAW)
        if self._display is not None:
            self._display.close()
        elif self._news:
            _Forgiving(self._out).write("".join(f"{text}\n" for text, _ in self._news))

    def _open_display(self) -> "_Display":
        self._restore_echo = _turn_echo_off(self._out)
        return _Display(self._out, colour=self._colour, goes=self._goes)


class _Display:
    """What is drawn, by rich, which is imported when there is something to draw."""

    def __init__(self, out: TextIO, *, colour: bool, goes: bool) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow
        from rich.live import Live  # noqa: PLC0415

        self._console = Console(
            file=cast("TextIO", _Forgiving(out)),
            force_terminal=True,
            color_system="standard" if colour else None,
            no_color=False,
            legacy_windows=False,
        )
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=goes,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._drawn: list[int] = []

    def draw(self, news: Sequence[Line], lines: Sequence[Line], columns: int, rows: int) -> None:
        """`news` above everything from now on, `lines` in place of those before, in one write."""
        from rich.console import Group  # noqa: PLC0415 - imported already

        with self._console:
            self._erase_wrapped(columns)
            self._console.size = (columns, rows)
            self._live.start()
            self._live.update(Group(*(_text(line, "crop") for line in lines)), refresh=True)
            if news:
                told = (_text(line, "ignore") for line in news)
                self._console.print(*told, sep="\n", soft_wrap=True)
        self._drawn = [display_width(text) for text, _ in lines]

    def close(self) -> None:
        """Give the cursor back, below what stays."""
        self._live.stop()

    def _erase_wrapped(self, columns: int) -> None:
        """A terminal that became narrower has wrapped what was drawn; rich counts lines alone."""
        from rich.control import Control  # noqa: PLC0415 - imported already
        from rich.segment import ControlType  # noqa: PLC0415

        wrapped = sum(max(0, -(-width // columns) - 1) for width in self._drawn)
        step = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        self._console.control(Control(*(step * wrapped)))


class _Forgiving:
    """A terminal that is gone stops the view, never the engine."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.encoding = out.encoding

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._out.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._out.flush()


def _text(line: Line, overflow: "OverflowMethod") -> "Text":
    from rich.text import Text  # noqa: PLC0415 - imported already

    text, state = line
    style = STATE_COLOURS.get(state, "") if state else ""
    return Text(text, style, no_wrap=True, overflow=overflow)


def _turn_echo_off(out: TextIO) -> Callable[[], None]:
    """Have keys that are pressed, ^C among them, leave nothing on the screen; how to undo it."""
    try:
        terminal = out.fileno()
        before = termios.tcgetattr(terminal)
    except (OSError, ValueError, termios.error):
        return lambda: None
    iflag, oflag, cflag, lflag, *rest = before
    _set_attributes(terminal, [iflag, oflag, cflag, lflag & ~termios.ECHO, *rest])
    return partial(_set_attributes, terminal, before)


def _set_attributes(terminal: int, attributes: Any) -> None:
    """A process in the background may not set them, and leaves them."""
    with suppress(OSError, termios.error):
        if os.tcgetpgrp(terminal) == os.getpgrp():
            termios.tcsetattr(terminal, termios.TCSANOW, attributes)


def _is_in_foreground(out: TextIO) -> bool:
    """Whether a shell has given its terminal to this process; a terminal of no shell is its own."""
    try:
        return os.tcgetpgrp(out.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return True


def _size_of(out: TextIO) -> os.terminal_size:
    """Of the terminal that is drawn on: stdout may be a file."""
    try:
        found = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        return _FALLBACK_SIZE
    return found if found.columns and found.lines else _FALLBACK_SIZE
