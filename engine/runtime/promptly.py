"""Answers that are worth nothing when they come late: whoever asks doesn't wait longer."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from engine.errors import UnreachableError

Answer = TypeVar("Answer")


def promptly(ask: Callable[[], Answer], seconds: float) -> Answer:
    """What `ask` returns, if it does within `seconds`.

    Assumptions: `ask` may still be carried out later; its answer is then dropped, so it changes
    nothing in this process. Errors: UnreachableError when it takes longer; what `ask` raises.
    """
    answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put(ask())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answers.put(error)

    threading.Thread(target=run, name="ask promptly", daemon=True).start()
    try:
        answer = answers.get(timeout=max(seconds, 0.0))
    except queue.Empty:
        raise UnreachableError(f"no answer from the API server within {seconds:.1f} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer
