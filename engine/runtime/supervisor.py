"""The threads of one engine: their exceptions are contained, and liveness covers each of them.

A thread that ends in silence is worse than a process that ends: nothing starts it again. So every
loop of the engine runs here. A panic is reported and the loop run again; liveness names a thread
that is dead or hangs.
"""

import math
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct, field

from engine.refs import JobKey
from engine.runtime.retry import backoff
from engine.telemetry.events import Emit, InternalError

_FIRST_WAIT, _MAX_WAIT = 0.1, 10.0
_REPORT_AGAIN_AFTER = 300.0

Run = Callable[["SupervisedThread"], None]


class SupervisedThread:
    """A thread that calls `run` until it returns.

    Guarantees: an exception doesn't end it; it is reported, and `run` is called again after a
    back-off that starts anew once a call has lasted longer than the longest wait.
    Assumptions: `run` says with `expect` how long it may be silent, and its owner can make it
    return.
    """

    def __init__(self, supervisor: "Supervisor", name: str, run: Run) -> None:
        self.name = name
        self._supervisor = supervisor
        self._run = run
        self._deadline = math.inf
        self.stopped = threading.Event()
        """Set once `run` is to return."""
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def expect(self, seconds: float) -> None:
        """A heartbeat: the next one comes within `seconds`; `math.inf` while there is no work."""
        self._deadline = time.monotonic() + seconds

    def stop(self) -> None:
        """Don't call `run` again after a failure; its owner makes it return."""
        self.stopped.set()

    def join(self, seconds: float) -> bool:
        """Wait for the end, no longer than `seconds`; whether it has come."""
        if self._thread is not threading.current_thread():
            self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    @property
    def trouble(self) -> str:
        """Why it is unhealthy; "" while it works or waits for work."""
        if not self._thread.is_alive():
            return f"thread {self.name} is dead"
        late = time.monotonic() - self._deadline
        return f"thread {self.name} hangs, {late:.0f} s overdue" if late > 0 else ""

    def _loop(self) -> None:
        self._supervisor.threads.add(self)  # not before it lives, or it would be taken for dead
        failures = 0
        while not self.stopped.is_set():
            began = time.monotonic()
            try:
                self._run(self)
                break
            except Exception as error:  # noqa: BLE001 - panics end here
                self._supervisor.report(self.name, error)
            failures = 1 if time.monotonic() - began > _MAX_WAIT else failures + 1
            self.expect(math.inf)
            self.stopped.wait(backoff(failures, first=_FIRST_WAIT, longest=_MAX_WAIT))
        self._supervisor.threads.discard(self)


class Supervisor(Struct, eq=False):
    """Starts threads, reports their panics, and answers for their liveness.

    Guarantees: the same panic at the same place is reported once in five minutes and counted every
    time. Errors: none of its own.
    """

    emit: Emit
    panics: int = 0
    threads: set[SupervisedThread] = set()
    """Those that have begun, and have not returned."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _reported: dict[tuple[str, JobKey | None, str], float] = {}

    def start(self, name: str, run: Run) -> SupervisedThread:
        """Call `run` in a thread of its own."""
        return SupervisedThread(self, name, run)

    def report(
        self,
        component: str,
        error: Exception,
        key: JobKey | None = None,
        *,
        retrying: bool = True,
    ) -> None:
        """Count what `component` raised, and report it unless that was done a while ago.

        Guarantees: raises nothing itself, whatever the listener does.
        """
        kind, message = type(error).__name__, str(error)
        now = time.monotonic()
        with self._lock:
            self.panics += 1
            recently = now - _REPORT_AGAIN_AFTER
            self._reported = {known: at for known, at in self._reported.items() if at > recently}
            if (component, key, message) in self._reported:
                return
            self._reported[component, key, message] = now
        trace = "".join(traceback.format_exception(error))
        with suppress(Exception):
            self.emit(InternalError(key, component, kind, message, trace, retrying))

    def liveness(self) -> str:
        """Why the process should be started again; "" while every thread lives and keeps up."""
        return "; ".join(sorted(filter(None, (thread.trouble for thread in tuple(self.threads)))))
