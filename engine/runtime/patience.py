"""Reads that may be repeated: a server that is busy, or just being restarted, is waited for."""

import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import BusyError, EngineError
from engine.runtime.backoff import backoff

Found = TypeVar("Found")

BUSY_FOR, SILENT_FOR = 60.0, 10.0
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_SAY_AFTER = 3


def patiently(
    read: Callable[[], Found], say: Callable[[str], None], *, limit: float | None = None
) -> Found:
    """What `read` returns, at the latest after `limit` seconds of trying.

    Assumptions: `read` writes nothing. Errors: its last one. A server that says that it is busy
    is worth a minute, one that never says anything a few seconds: its address may be wrong.
    """
    began, tries, patience = time.monotonic(), 0, SILENT_FOR
    while True:
        try:
            return read()
        except EngineError as error:
            if isinstance(error, BusyError):
                patience = BUSY_FOR
            tries += 1
            wait = backoff(tries, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
            wait = max(wait, getattr(error, "retry_after", 0.0))
            end = began + min(patience, patience if limit is None else limit)
            if not error.retryable or time.monotonic() + wait > end:
                raise
            if tries == _SAY_AFTER:
                say(str(error))
            time.sleep(wait)
