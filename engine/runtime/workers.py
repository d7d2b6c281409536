"""Threads that take keys from a work queue until it is closed."""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from engine.runtime.workqueue import WorkQueue

Key = TypeVar("Key", bound=Hashable)


class Workers(Generic[Key]):
    """`count` threads; `handle` is called with one key at a time, and never raises.

    A key is done when `handle` returns True; otherwise whoever it was handed to calls the
    queue's `done`.
    """

    def __init__(self, queue: WorkQueue[Key], handle: Callable[[Key], bool], count: int) -> None:
        self._queue = queue
        self._handle = handle
        self._threads = [
            threading.Thread(target=self._run, name=f"worker-{n}", daemon=True)
            for n in range(count)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> bool:
        """Close the queue and wait for what is half-way; whether all ended within `seconds`."""
        self._queue.close()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while (key := self._queue.get()) is not None:
            done = True
            try:
                done = self._handle(key)
            finally:
                if done:
                    self._queue.done(key)
