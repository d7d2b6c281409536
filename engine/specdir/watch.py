"""Hear of changes below the source's paths: by inotify, or by looking every few seconds."""

import errno
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.specdir.inotify import Inotify, Wanted
from engine.specdir.pulse import Pulse

SETTLED_AFTER = 1.0
_JUST_FOUND = 0.1
_SAFETY = 60.0
_POLL = 2.0
_HINTS = {
    errno.ENOSPC: "raise fs.inotify.max_user_watches",
    errno.EMFILE: "raise fs.inotify.max_user_instances or the limit of open files",
}


def connect_inotify() -> Any:
    """An inotify instance of its own, with the thread that reads its events.

    Errors: ImportError where watchdog has none, OSError when there are too many already.
    """
    from watchdog.observers.inotify_c import InotifyFD  # noqa: PLC0415 - 38 ms

    return InotifyFD()


class Watch:
    """Calls `on_change` when it is time to read.

    With inotify `differs` is asked every minute nevertheless, for what inotify can't see.
    Without it (`poll` given, no inotify, its limits reached, its thread dead) `differs` is asked
    every `poll` seconds; that this has come about is told once.
    """

    def __init__(
        self,
        *,
        poll: float | None,
        connect: Callable[[], Any],
        differs: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        self.polling = poll is not None
        self._poll = poll if poll is not None else _POLL
        self._connect = connect
        self._differs = differs
        self._tell = tell
        self._lock = threading.Lock()
        self._open: dict[str, float] = {}
        self._inotify: Inotify | None = None
        self._pulse: Pulse | None = None

    @property
    def started(self) -> bool:
        return self._pulse is not None

    @property
    def interval(self) -> float:
        return self._poll

    def start(self, on_change: Callable[[], None]) -> None:
        """Errors: none; without inotify it polls."""
        interval = self._poll if self.polling else _SAFETY
        self._pulse = Pulse(on_change, self._looks_different, interval)
        if not self.polling:
            try:
                self._inotify = Inotify(self._connect, self)
            except (ImportError, OSError) as error:
                self.failed(error)
        self._pulse.start()

    def cover(self, trees: Iterable[str], entries: Mapping[str, Wanted]) -> bool:
        """Watch these from now on; whether anything is watched that wasn't."""
        if self._inotify is None:
            return False
        new = not self.polling and self._inotify.cover(trees, entries)
        if self.polling:
            self._inotify.close()
            self._inotify = None
        return new

    def being_written(self, path: str) -> float:
        """Seconds until the file at the real `path` counts as finished; 0 if nobody writes it."""
        with self._lock:
            since = self._open.get(path)
        return 0.0 if since is None else max(0.0, since + SETTLED_AFTER - time.monotonic())

    def later(self, seconds: float) -> None:
        """Call `on_change` in `seconds`, or before."""
        if self._pulse is not None:
            self._pulse.later(seconds)

    def stop(self) -> None:
        """Guarantees: `on_change` isn't called any more once this returns."""
        if self._pulse is not None:
            self._pulse.stop()
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def changed(self, path: str) -> None:
        with self._lock:
            self._open.pop(path, None)
        if self._pulse is not None:
            self._pulse.event()

    def writing(self, path: str, *, just_found: bool = False) -> None:
        now = time.monotonic()
        wait = _JUST_FOUND if just_found else SETTLED_AFTER
        with self._lock:
            self._open[path] = now - SETTLED_AFTER + wait
        if self._pulse is not None:
            self._pulse.more()
            self._pulse.later(wait)

    def failed(self, error: Exception) -> None:
        with self._lock:
            told, self.polling = self.polling, True
            self._open.clear()
        if told:
            return
        number = error.errno if isinstance(error, OSError) else None
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = f", {_HINTS[number]}" if number in _HINTS else ""
        self._tell(f"inotify can't watch everything ({why}); polling every {self._poll:g} s{hint}")
        if self._pulse is not None:
            self._pulse.look_every(self._poll)
            self._pulse.event()

    def _looks_different(self) -> bool:
        now = time.monotonic()
        with self._lock:
            self._open = {p: at for p, at in self._open.items() if now - at < SETTLED_AFTER}
        if self._inotify is not None and not self.polling and not self._inotify.alive:
            self.failed(RuntimeError("its thread has ended"))
        return self._differs()
