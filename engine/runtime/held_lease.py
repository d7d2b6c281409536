"""The Lease of a source as one engine holds it: each of its requests, and how long it is good for.

What the Lease says is decided in `engine.decide.lease`; when to ask is the Leader's.
"""

import sys
import threading
import time

from engine.cluster.client import Client
from engine.cluster.leases import read_lease, write_lease
from engine.decide.lease import Hold, LeaseObject, given_up, lease_name, read_hold, taken
from engine.errors import AlreadyExistsError, ConflictError, EngineError
from engine.runtime.promptly import promptly

_PATIENCE, _SHORTEST_PATIENCE = 5.0, 0.1
_PAUSE = 0.1


class HeldLease:
    """One engine's hold on a Lease.

    Guarantees: no request is waited for longer than 5 s, nor for longer than the hold lasts.
    """

    def __init__(
        self, client: Client, namespace: str, source: str, identity: str, duration: float
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._source = source
        self._identity = identity
        self._duration = duration
        self._lease: LeaseObject | None = None
        self._expires = 0.0
        self._may_be_ours = False
        self.held = False

    @property
    def left(self) -> float:
        """Seconds until it expires; 0 if it isn't held."""
        return max(0.0, self._expires - local_clock()) if self.held else 0.0

    def look(self) -> Hold:
        """What the Lease says now. Errors: any of the client's."""
        self._lease = promptly(self._read, self._patience)
        return read_hold(self._lease)

    def claim(self) -> None:
        """Write it in our name; it counts from before that, as for others it counts from after.

        Errors: ConflictError or AlreadyExistsError when it isn't as we saw it last.
        """
        began = local_clock()
        mine = taken(
            self._lease,
            namespace=self._namespace,
            source=self._source,
            identity=self._identity,
            duration=self._duration,
            now=self._client.now(),
        )
        self._may_be_ours = True
        self._lease = promptly(lambda: write_lease(self._client, mine), self._patience)
        self._expires = began + self._duration

    def renew(self, ended: threading.Event) -> str:
        """Who else holds the Lease now; "" if we do. Once `ended` is set it isn't taken again.

        Errors: any of the client's; then nobody knows.
        """
        try:
            self.claim()
        except (ConflictError, AlreadyExistsError):
            holder = self.look().holder
            if holder not in ("", self._identity):
                self.held = False
                return holder
            if not ended.is_set():
                self.claim()
        return ""

    def give_up(self, until: float) -> None:
        """Let the next engine have it. Errors: none; after `until` it is left to expire."""
        self.held = False
        while self._may_be_ours and local_clock() < until:
            try:
                self._clear(until)
                self._may_be_ours = False
            except EngineError as error:
                if not error.retryable:
                    return
                time.sleep(max(0.0, min(_PAUSE, until - local_clock())))

    @property
    def _patience(self) -> float:
        return max(_SHORTEST_PATIENCE, min(_PATIENCE, self.left)) if self.left else _PATIENCE

    def _read(self) -> LeaseObject | None:
        return read_lease(self._client, self._namespace, lease_name(self._source))

    def _clear(self, until: float) -> None:
        """Reads it first: a request of ours that was given up may have been carried out."""
        lease = promptly(self._read, until - local_clock())
        if lease is not None and read_hold(lease).holder == self._identity:
            empty = given_up(lease, source=self._source, now=self._client.now())
            promptly(lambda: write_lease(self._client, empty), until - local_clock())


def local_clock() -> float:
    """Seconds that also pass while the machine sleeps: meanwhile another engine may have begun."""
    linux = sys.platform == "linux"
    return time.clock_gettime(time.CLOCK_BOOTTIME) if linux else time.monotonic()
