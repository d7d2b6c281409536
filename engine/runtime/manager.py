"""Starts what an engine consists of, and ends it in order."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Protocol

from engine.errors import EngineError
from engine.runtime.supervisor import SupervisedThread, Supervisor
from engine.telemetry.events import Emit, Stopping


class Runnable(Protocol):
    """A part of an engine that runs in a thread of its own."""

    name: str
    grace: float
    """For how many seconds its end is waited for."""

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Work until `stop` is set.

        `heartbeat` is told within how many seconds it is called again. Errors: an EngineError ends
        the manager with it; anything else is reported, and this is called again.
        """


class Manager:
    """Runs runnables until it is stopped.

    Guarantees: they are started in order once `check` has returned, and asked to end in the reverse
    order; each has ended, or had its grace, before the one before it is asked. The thread that
    calls `run` does nothing but wait, so that a signal is answered at once.
    """

    def __init__(
        self,
        check: Callable[[], None],
        runnables: Sequence[Runnable],
        supervisor: Supervisor,
        emit: Emit,
    ) -> None:
        self._check = check
        self._runnables = runnables
        self._supervisor = supervisor
        self._emit = emit
        self._messages: SimpleQueue[str | EngineError | None] = SimpleQueue()
        """Why to stop, what a runnable ended with, or None once `check` has returned."""
        self._running: list[tuple[Runnable, threading.Event, SupervisedThread]] = []

    def run(self) -> None:
        """Returns once `stop` was called. Errors: what `check` or a runnable ended with."""
        self._supervisor.start("start", self._start)
        while (message := self._messages.get()) is None:
            for runnable in self._runnables:
                stop = threading.Event()
                run = partial(self._run, runnable, stop)
                self._running.append((runnable, stop, self._supervisor.start(runnable.name, run)))
        if self._running or isinstance(message, str):
            self._emit(Stopping(str(message)))
        for runnable, stop, thread in reversed(self._running):
            stop.set()
            thread.stop()
            thread.join(runnable.grace)
        if isinstance(message, EngineError):
            raise message

    def stop(self, reason: str) -> None:
        """End in order. May be called from a signal handler."""
        self._messages.put(reason)

    def _start(self, thread: SupervisedThread) -> None:
        del thread
        try:
            self._check()
        except EngineError as error:
            self._messages.put(error)
        else:
            self._messages.put(None)

    def _run(self, runnable: Runnable, stop: threading.Event, thread: SupervisedThread) -> None:
        try:
            runnable.run(stop, thread.expect)
        except EngineError as error:
            self._messages.put(error)
