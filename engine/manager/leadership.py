"""Who leads: the Lease is waited for, held, lost and waited for again, in a thread of its own."""

import threading
from collections.abc import Callable

from engine.errors import EngineError
from engine.runtime.leader import Leader
from engine.telemetry.events import Emit, LeaderChanged


class Leadership:
    """Guarantees: `on_change(True)` and `on_change(False)` are called in turn, beginning with True.

    A Lease that can't be renewed is held again as soon as the server answers, unless another
    engine took it. Errors: what `Leader.acquire` raises is told to `on_end`, after which nothing
    follows.
    """

    def __init__(
        self,
        leader: Leader,
        *,
        on_change: Callable[[bool], None],
        on_end: Callable[[EngineError], None],
        emit: Emit,
    ) -> None:
        self._leader = leader
        self._on_change = on_change
        self._on_end = on_end
        self._emit = emit
        self._leads = False
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._taken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)

    @property
    def leads(self) -> bool:
        return self._leads and self._leader.holds

    @property
    def holder(self) -> str:
        """Who leads, as far as is known; "" for nobody."""
        return self._leader.holder

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Give the Lease up: the next engine needn't wait for it to expire."""
        self._stopped.set()
        self._taken.set()
        self._leads = False
        self._leader.release()
        if self._thread.ident is not None:
            self._thread.join(1.0)

    def _run(self) -> None:
        try:
            while self._leader.acquire(self._stopped):
                self._taken.clear()
                self._set(True)
                self._leader.start(self._lost, lambda: self._set(True))
                self._taken.wait()
        except EngineError as error:
            self._on_end(error)

    def _lost(self, holder: str) -> None:
        self._set(False)
        if holder:
            self._taken.set()

    def _set(self, leads: bool) -> None:
        with self._lock:
            if self._leads == leads or self._stopped.is_set():
                return
            self._leads = leads
        self._on_change(leads)
        self._emit(LeaderChanged(leads, self.holder))
