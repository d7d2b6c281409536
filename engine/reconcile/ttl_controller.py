"""The TTL rule of an engine that stays, pass by pass."""

import threading
from collections.abc import Callable

from engine.prune.result import PruneEntry
from engine.prune.source import SourcePruner, SourceState
from engine.reconcile.controller import JobController
from engine.telemetry.events import ErrorReported, Notice, ObjectPruned

_STALL_TIMEOUT = 600.0


class TtlController:
    """One pass every `interval` seconds, whenever this engine leads.

    Errors: none of the cluster's; they are reported.
    """

    name = "TTL controller"
    grace = 0.0

    def __init__(
        self,
        controller: JobController,
        pruner: SourcePruner,
        state: Callable[[], SourceState],
        is_leader: Callable[[], bool],
        interval: float,
    ) -> None:
        self._controller = controller
        self._pruner = pruner
        self._state = state
        self._is_leader = is_leader
        self._interval = interval

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Prune until `stop` is set; a pass that is half-way then ends by itself."""
        while not stop.wait(self._interval):
            heartbeat(_STALL_TIMEOUT + self._interval)
            if self._is_leader():
                self._prune()

    def _prune(self) -> None:
        result = self._pruner.prune(self._controller.config, self._state(), self._report)
        for note in result.notes:
            self._controller.emit(Notice(note))
        for problem in (*result.errors, *result.warnings):
            self._controller.emit(ErrorReported(None, f"pruning: {problem}", retrying=True))

    def _report(self, entry: PruneEntry) -> None:
        self._controller.emit(ObjectPruned(entry.ref, entry.action, entry.reason))
