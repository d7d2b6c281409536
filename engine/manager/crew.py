"""Who does the work: threads that give jobs their turns, and a few that remove whole jobs."""

import time
from collections.abc import Callable

from engine.manager.removals import Removals
from engine.manager.turns import Turns
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from engine.runtime.workers import Workers
from engine.runtime.workqueue import WorkQueue

_REMOVERS = 4
_REMOVAL = 3600.0


class Crew:
    """Guarantees: of one job there is one turn or one removal at a time.

    `removals` is None where jobs without a spec stay; `on_turn` gets a turn's seconds and the
    class of its error. A removal takes long, so it keeps no worker from the other jobs.
    """

    def __init__(
        self,
        queue: WorkQueue[JobKey],
        turns: Turns,
        removals: Removals | None,
        concurrency: int,
        on_turn: Callable[[float, str], None],
        supervisor: Supervisor,
    ) -> None:
        self._queue = queue
        self._turns = turns
        self._removals = removals
        self._on_turn = on_turn
        self._removing: WorkQueue[JobKey] = WorkQueue()
        self._workers = Workers(queue, self._take_turn, concurrency, supervisor)
        self._removers = Workers(
            self._removing, self._remove, _REMOVERS, supervisor, "removal", stall_timeout=_REMOVAL
        )

    def start(self) -> None:
        self._workers.start()
        self._removers.start()

    def stop(self, seconds: float) -> bool:
        """Bring to its next safe point what is half-way; whether that was within `seconds`.

        A removal needs no end: the next engine goes on with it.
        """
        self._removing.shut_down()
        return self._workers.stop(seconds)

    def _take_turn(self, key: JobKey) -> bool:
        if self._removals is not None and self._removals.is_due(key):
            self._removing.add(key)
            return False
        began = time.monotonic()
        turn = self._turns.take(key)
        self._on_turn(time.monotonic() - began, turn.error)
        if turn.again is None:
            self._queue.forget_delayed(key)
        else:
            self._queue.add_after(key, turn.again)
        return True

    def _remove(self, key: JobKey) -> bool:
        try:
            self._turns.forget(key)
            if self._removals is not None:
                self._removals.remove(key)
        finally:
            self._queue.done(key)
        return True
