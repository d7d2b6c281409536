"""The TTL rule of an engine that stays: over its own pods, from what it has read already."""

import threading
from collections.abc import Callable

from engine.api.model import Config
from engine.cluster.client import Client
from engine.errors import EngineError
from engine.prune.options import ttl_options
from engine.prune.result import PruneEntry
from engine.prune.run import prune
from engine.reconcile.watches import Watches
from engine.telemetry.events import Emit, ObjectPruned, Trouble


class Pruner:
    """One pass every `interval` seconds, in a thread of its own, whenever `may` says so.

    Guarantees: no request while nothing has expired. Errors: none; they are told.
    """

    def __init__(
        self,
        client: Client,
        watches: Watches,
        interval: float,
        concurrency: int,
        may: Callable[[], bool],
        config: Callable[[], Config],
        emit: Emit,
    ) -> None:
        self._client = client
        self._watches = watches
        self._interval = interval
        self._concurrency = concurrency
        self._may = may
        self._config = config
        self._emit = emit
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prune", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No pass begins any more; one that is half-way ends by itself."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            if not self._may():
                continue
            try:
                self._prune()
            except EngineError as error:
                self._emit(Trouble(None, f"pruning: {error}", retrying=True))
            except Exception as error:  # noqa: BLE001 - the next pass may do better
                words = f"pruning: internal error: {type(error).__name__}: {error}"
                self._emit(Trouble(None, words, retrying=True))

    def _prune(self) -> None:
        config = self._config()
        most = config.limits.max_deletes_per_pass
        options = ttl_options(config, self._concurrency, most)
        namespaces = self._watches.namespaces
        pods = [pod for name in namespaces for pod in self._watches.pods(name).all_pods()]
        result = prune(self._client, options, self._tell, pods)
        for error in result.errors:
            self._emit(Trouble(None, f"pruning: {error}", retrying=True))

    def _tell(self, entry: PruneEntry) -> None:
        self._emit(ObjectPruned(entry.ref, entry.action, entry.reason))
