"""Threads that take keys from a work queue until it is shut down."""

import math
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from engine.runtime.supervisor import SupervisedThread, Supervisor
from engine.runtime.workqueue import WorkQueue

Key = TypeVar("Key", bound=Hashable)

_STALL_TIMEOUT = 600.0
_RETRY_AFTER = 5.0


class Workers(Generic[Key]):
    """`count` threads; `handle` is called with one key at a time.

    A key is done when `handle` returns True; otherwise whoever it was handed to calls the
    queue's `done`. Guarantees: what `handle` raises is the supervisor's to report; the key comes
    again. A call that takes longer than ten minutes makes liveness fail.
    """

    def __init__(
        self,
        queue: WorkQueue[Key],
        handle: Callable[[Key], bool],
        count: int,
        supervisor: Supervisor,
        name: str = "worker",
        *,
        stall_timeout: float = _STALL_TIMEOUT,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._count = count
        self._supervisor = supervisor
        self._name = name
        self._stall_timeout = stall_timeout
        self._threads: list[SupervisedThread] = []

    def start(self) -> None:
        """Begin to take keys."""
        self._threads = [
            self._supervisor.start(f"{self._name}-{number}", self._run)
            for number in range(self._count)
        ]

    def stop(self, seconds: float) -> bool:
        """Shut the queue down and wait for what is half-way; whether all ended within `seconds`."""
        self._queue.shut_down()
        deadline = time.monotonic() + seconds
        ended = [thread.join(deadline - time.monotonic()) for thread in self._threads]
        return all(ended)

    def _run(self, thread: SupervisedThread) -> None:
        while True:
            thread.expect(math.inf)
            key = self._queue.get()
            if key is None:
                return
            thread.expect(self._stall_timeout)
            done = True
            try:
                done = self._handle(key)
            except Exception:
                self._queue.add_after(key, _RETRY_AFTER)
                raise
            finally:
                if done:
                    self._queue.done(key)
