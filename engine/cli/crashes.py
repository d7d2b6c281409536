"""What is raised where nothing contains it: reported like everything else, secrets masked.

Python itself prints such a traceback as it is, whatever the log format; these hooks take its place.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.telemetry.events import Emit


@contextmanager
def report_crashes(emit: "Emit") -> Iterator[None]:
    """Crashes in any thread, and of finalizers, are events for as long as this lasts.

    Guarantees: a hook raises nothing; afterwards all is as it was before.
    """

    def report(error: BaseException | None) -> None:
        if error is None or isinstance(error, SystemExit | BrokenPipeError):
            return
        import traceback  # noqa: PLC0415 - rare

        from engine.telemetry.events import InternalError  # noqa: PLC0415

        name, kind = threading.current_thread().name, type(error).__name__
        with suppress(Exception):
            trace = "".join(traceback.format_exception(error))
            emit(InternalError(None, name, kind, str(error), trace, retrying=False))

    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.excepthook = lambda _kind, error, _trace: report(error)
    threading.excepthook = lambda crash: report(crash.exc_value)
    sys.unraisablehook = lambda crash: report(crash.exc_value)
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = before
