"""How far something is that takes long; what is done in a moment shows nothing."""

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from engine.telemetry.redact import REDACTOR

if TYPE_CHECKING:
    from engine.cli.printers.live_view import LiveView

_MOMENT = 0.5
_PAUSE = 0.1
_DUMB = frozenset({"dumb", "unknown"})


def can_redraw() -> bool:
    """Whether stderr is a terminal on which the cursor can be moved."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in _DUMB


class ProgressLine:
    """One line on stderr, redrawn and taken away at the end; safe to use from several threads.

    Guarantees: nothing is written, and nothing imported for it, unless stderr is a terminal and the
    work has taken half a second.
    """

    def __init__(self) -> None:
        self._due = time.monotonic() + _MOMENT if can_redraw() else float("inf")
        self._lock = threading.Lock()
        self._view: LiveView | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, text: str) -> None:
        """Say how far it is; may be called as often as anything is done."""
        if time.monotonic() < self._due:
            return
        with self._lock:
            now = time.monotonic()
            if now < self._due:
                return
            self._due = now + _PAUSE
            from engine.telemetry.events import Progress  # noqa: PLC0415 - rare

            if self._view is None:
                from engine.cli.printers.live_view import LiveView  # noqa: PLC0415

                self._view = LiveView(sys.stderr, REDACTOR, colour=False, jobs=0)
            self._view(Progress(text))

    def close(self) -> None:
        """Take the line away; nothing is shown any more."""
        with self._lock:
            self._due = float("inf")
            if self._view is not None:
                self._view.close()
