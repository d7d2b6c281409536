"""The TTL rule of an engine that stays: over its own pods, from what it has read already.

Where its source has pods and no spec any more nothing is watched: those are read once, and again
when one of them has expired.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.decide.prune import Delete, evaluate
from engine.errors import EngineError
from engine.prune.elsewhere import pods_elsewhere
from engine.prune.options import ttl_options
from engine.prune.result import PruneEntry
from engine.prune.run import prune
from engine.reconcile.controller import JobController
from engine.runtime.leader_election import LeaderElector
from engine.telemetry.events import ErrorReported, ObjectPruned

_STALL_TIMEOUT = 600.0


class TtlController:
    """One pass every `interval` seconds, whenever this engine leads.

    Guarantees: after the first pass no request while nothing has expired. Errors: none of the
    cluster's; they are reported.
    """

    name = "TTL controller"
    grace = 0.0

    def __init__(
        self,
        controller: JobController,
        elector: LeaderElector,
        interval: float,
        concurrency: int,
        logs_dir: Path | None = None,
    ) -> None:
        self._controller = controller
        self._elector = elector
        self._interval = interval
        self._concurrency = concurrency
        self._logs_dir = logs_dir
        self._elsewhere: list[dict[str, Any]] | None = None
        """The source's pods where nothing is watched, as last read."""

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Prune until `stop` is set; a pass that is half-way then ends by itself."""
        while not stop.wait(self._interval):
            heartbeat(_STALL_TIMEOUT + self._interval)
            if self._elector.is_leader:
                self._prune()

    def _prune(self) -> None:
        controller = self._controller
        config, informers = controller.config, controller.informers
        most = config.limits.max_deletes_per_pass
        options = ttl_options(config, self._concurrency, most, self._logs_dir)
        pods = [pod for name in informers.namespaces for pod in informers.pods(name).all_items()]
        try:
            pods += self._pods_elsewhere(set(informers.namespaces))
            result = prune(controller.client, options, self._report, pods)
            problems = (*result.errors, *result.warnings)
        except EngineError as raised:
            problems = (raised,)
        for problem in problems:
            controller.emit(ErrorReported(None, f"pruning: {problem}", retrying=True))

    def _pods_elsewhere(self, watched: set[str]) -> list[dict[str, Any]]:
        controller = self._controller
        now = controller.client.now()
        if self._elsewhere is None or any(
            isinstance(evaluate(pod["metadata"], now), Delete) for pod in self._elsewhere
        ):
            self._elsewhere = pods_elsewhere(controller.client, controller.source, watched)
        return [pod for pod in self._elsewhere if pod["metadata"]["namespace"] not in watched]

    def _report(self, entry: PruneEntry) -> None:
        self._controller.emit(ObjectPruned(entry.ref, entry.action, entry.reason))
