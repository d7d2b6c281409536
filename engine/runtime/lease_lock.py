"""The Lease of a source as a lock: read it, write it in our name, release it.

What a Lease says is decided in `engine.decide.lease`; when to ask is the elector's business.
"""

import threading
import time

from engine.boottime import boottime
from engine.cluster.client import Client
from engine.cluster.leases import read_lease, write_lease
from engine.decide.lease import (
    LeaseObject,
    LeaseRecord,
    acquired,
    lease_name,
    read_lease_record,
    released,
)
from engine.errors import AlreadyExistsError, ConflictError, EngineError

_REQUEST_TIMEOUT, _SHORTEST_TIMEOUT = 5.0, 0.1
_RETRY_RELEASE = 0.1


class LeaseLock:
    """One engine's hold on the Lease of `source` in `namespace`; used from one thread.

    Guarantees: no request takes longer than 5 s, nor than the hold lasts. Assumptions: `identity`
    is nobody else's.
    """

    def __init__(
        self, client: Client, namespace: str, source: str, identity: str, duration: float
    ) -> None:
        self.source = source
        self.identity = identity
        self.duration = duration
        self._client = client
        self._namespace = namespace
        self._lease: LeaseObject | None = None
        self._expires = 0.0
        """By `boottime`: another engine may begin while this machine sleeps."""
        self._may_be_ours = False

    @property
    def remaining(self) -> float:
        """Seconds until our hold expires, 0 without one. May be asked from any thread."""
        return max(0.0, self._expires - boottime())

    def get(self) -> LeaseRecord:
        """What the Lease says now. Errors: any of the client's."""
        self._lease = self._read(self._timeout)
        return read_lease_record(self._lease)

    def update(self) -> None:
        """Write the Lease in our name; it counts from before that, as for others from after.

        Errors: ConflictError or AlreadyExistsError when it isn't as we saw it last.
        """
        began = boottime()
        mine = acquired(
            self._lease,
            namespace=self._namespace,
            source=self.source,
            identity=self.identity,
            duration=self.duration,
            now=self._client.now(),
        )
        self._may_be_ours = True
        self._lease = write_lease(self._client, mine, timeout=self._timeout)
        self._expires = began + self.duration

    def renew(self, stop: threading.Event) -> str:
        """Who else holds the Lease now; "" if we do. Once `stop` is set it isn't taken again.

        Errors: any of the client's; then nobody knows.
        """
        try:
            self.update()
        except (ConflictError, AlreadyExistsError):
            holder = self.get().holder
            if holder not in ("", self.identity):
                self._expires = 0.0
                return holder
            if not stop.is_set():
                self.update()
        return ""

    def release(self, timeout: float) -> None:
        """Let the next engine have it. Errors: none; after `timeout` it is left to expire."""
        until = boottime() + timeout
        self._expires = 0.0
        while self._may_be_ours and boottime() < until:
            try:
                self._release_once(until)
                self._may_be_ours = False
            except EngineError as error:
                if not error.retryable:
                    return
                time.sleep(max(0.0, min(_RETRY_RELEASE, until - boottime())))

    @property
    def _timeout(self) -> float:
        left = self.remaining
        return max(_SHORTEST_TIMEOUT, min(_REQUEST_TIMEOUT, left)) if left else _REQUEST_TIMEOUT

    def _read(self, timeout: float) -> LeaseObject | None:
        name = lease_name(self.source)
        return read_lease(self._client, self._namespace, name, timeout=timeout)

    def _release_once(self, until: float) -> None:
        """Reads it first: a request of ours that timed out may have been carried out."""
        lease = self._read(_until(until))
        if lease is not None and read_lease_record(lease).holder == self.identity:
            empty = released(lease, source=self.source, now=self._client.now())
            write_lease(self._client, empty, timeout=_until(until))


def _until(end: float) -> float:
    return max(_SHORTEST_TIMEOUT, end - boottime())
