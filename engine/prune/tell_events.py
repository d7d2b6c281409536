"""An Event `Pruned` for what was deleted: best effort, and no more of them than allowed."""

import threading

from engine.cluster.client import Client
from engine.cluster.events import record_event
from engine.prune.target import Target

_GIVE_UP_AFTER = 3


class EventTeller:
    """Stops where Events may not be written. Safe to use from several threads."""

    def __init__(self, client: Client, most: int) -> None:
        self._client = client
        self._left = most
        self._failures = 0
        self._lock = threading.Lock()

    def pruned(self, target: Target, reason: str) -> None:
        with self._lock:
            if self._left <= 0 or self._failures >= _GIVE_UP_AFTER or not target.ref.namespace:
                return
            self._left -= 1
        written = record_event(
            self._client,
            target.ref,
            target.uid,
            reason="Pruned",
            message=reason,
            now=self._client.now(),
            suffix=f".{target.uid[:8]}",
            api_version=target.resource.api_version,
            kind="Normal",
        )
        with self._lock:
            self._failures = 0 if written else self._failures + 1
