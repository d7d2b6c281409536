"""One engine at a time acts for a source: it holds the source's Lease and renews it.

The algorithm is client-go's. Written by hand because the client's own leader election can neither
be stopped nor release its Lease. `engine.runtime.lease` has the pure half.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import (
    AlreadyExistsError,
    ConflictError,
    EngineError,
    ForbiddenError,
    NotFoundError,
    OwnershipError,
)
from engine.refs import Ref
from engine.runtime.lease import (
    LeaseObject,
    LeaseRecord,
    ObservedLease,
    acquired,
    lease_name,
    observe,
    read_lease_record,
    released,
)
from engine.runtime.retry import backoff
from engine.telemetry.events import Emit, LeaderChanged, Notice
from engine.times import boottime

_RENEWALS, _RETRIES = 3, 5
"""How often the Lease is renewed within its duration, and how often after a failure."""
_REQUEST_TIMEOUT, _MIN_TIMEOUT = 5.0, 0.1
_RELEASE_TIMEOUT, _RETRY_RELEASE = 2.0, 0.1
_STALL_TIMEOUT = 60.0
_FIRST_WAIT, _MAX_WAIT = 0.1, 5.0
_REPORT_LOOKS, _REPORT_RENEWALS = 3, 2
"""How many failures in a row are reported."""
_RIGHTS = "leader election needs get, create and update on leases in coordination.k8s.io"


class LeaseLock:
    """One engine's hold on the Lease of `source` in `namespace`; used from one thread.

    Guarantees: no request takes longer than 5 s, nor than the hold lasts.
    """

    def __init__(self, client: Client, namespace: str, source: str, duration: float) -> None:
        self.source = source
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
        """Unique to this process; people read from it where the engine runs."""
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

    def get(self, timeout: float | None = None) -> LeaseRecord:
        """Read the Lease; one with another holder ends our hold. Errors: any of the client's."""
        ref = Ref("Lease", self._namespace, lease_name(self.source))
        self._lease = api.get(self._client, ref, timeout=timeout or self._timeout)
        record = read_lease_record(self._lease)
        if record.holder not in ("", self.identity):
            self._expires = 0.0
        return record

    def update(self) -> None:
        """Write the Lease in our name. The hold counts from before the write.

        Errors: ConflictError or AlreadyExistsError when the Lease has changed since it was read.
        """
        began = boottime()
        now, before, where = self._client.now(), self._lease, self._namespace
        mine = acquired(before, where, self.source, self.identity, self.duration, now)
        self._may_be_ours = True  # also if the answer is lost
        self._lease = self._write(mine, self._timeout)
        self._expires = began + self.duration

    def release(self, timeout: float) -> None:
        """Leave the Lease to the next engine. Errors: none; after `timeout` it is left to expire.

        It is read first: a request of ours that timed out may have been carried out.
        """
        until = boottime() + timeout
        self._expires = 0.0
        while self._may_be_ours and (left := until - boottime()) > 0:
            try:
                if self.get(max(_MIN_TIMEOUT, left)).holder == self.identity and self._lease:
                    empty = released(self._lease, source=self.source, now=self._client.now())
                    self._write(empty, max(_MIN_TIMEOUT, until - boottime()))
                self._may_be_ours = False
            except EngineError as error:
                if not error.retryable:
                    return
                time.sleep(max(0.0, min(_RETRY_RELEASE, until - boottime())))

    @property
    def _timeout(self) -> float:
        left = self.remaining
        return max(_MIN_TIMEOUT, min(_REQUEST_TIMEOUT, left)) if left else _REQUEST_TIMEOUT

    def _write(self, lease: LeaseObject, timeout: float) -> LeaseObject:
        if not lease["metadata"].get("resourceVersion"):
            return api.create(self._client, lease, timeout=timeout)
        try:
            return api.update(self._client, lease, timeout=timeout)
        except NotFoundError as error:  # deleted since it was read
            raise ConflictError(error.cause, status=error.status, reason=error.reason) from None


class LeaderElector:
    """Acquires the Lease, renews it, and acquires it again after another engine had it.

    Guarantees: at most one engine `is_leader` at any time, whatever their clocks show and however
    long they slept. Where the Lease is deleted, that holds among the engines that knew its holder.
    While it leads, it writes once every third of the Lease's duration. `on_change` is called with
    True and False in turn, beginning with True. Assumptions: the engines of a source have the same
    lease duration; their clocks run at about the same speed.
    """

    def __init__(
        self, lock: LeaseLock, *, wait: bool, emit: Emit, on_change: Callable[[bool], None]
    ) -> None:
        """With `wait` it waits while another engine leads; without, `run` ends then."""
        self._lock = lock
        self._wait = wait
        self._emit = emit
        self._on_change = on_change
        self._what = f'source "{lock.source}"'
        self._holder = ""
        self._reported_holder = ""
        self._observed: ObservedLease | None = None
        self._unconfirmed_until = 0.0
        """When the Lease expires of a holder that has not been seen to renew it; else 0."""
        self._failures = 0
        self._leads = False

    @property
    def is_leader(self) -> bool:
        """Whether the Lease was renewed within its duration, by a clock that counts sleep too."""
        return self._lock.remaining > 0

    @property
    def holder(self) -> str:
        """The last known holder; "" without one, or once our own hold has expired."""
        holder = self._holder
        return "" if holder == self._lock.identity and not self.is_leader else holder

    @property
    def unknown_leader(self) -> str:
        """Why the leader is unknown; "" while this engine leads, or another one is seen alive."""
        if self.is_leader:
            return ""
        if not self.holder:
            return "no leader of this source is known"
        if not self._unconfirmed_until:
            return ""
        left = max(0.0, self._unconfirmed_until - boottime())
        return f"{self.holder} has not been seen to renew its Lease, which expires in {left:.0f} s"

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Lead whenever that is possible until `stop` is set, then release the Lease within 2 s.

        A server that is away is waited for. Errors: OwnershipError when another engine is seen
        alive and this one doesn't wait; ForbiddenError without the rights; any other error that
        waiting can't mend.
        """
        try:
            while not stop.is_set():
                heartbeat(self._lock.duration + _STALL_TIMEOUT)
                self._report_change()
                wait = self._acquire_or_renew(stop)
                self._report_change()
                heartbeat(wait + _STALL_TIMEOUT)
                stop.wait(wait)
        finally:
            if stop.is_set():
                self._leads = False
                if self._holder == self._lock.identity:
                    self._holder = ""
                self._lock.release(_RELEASE_TIMEOUT)

    def _acquire_or_renew(self, stop: threading.Event) -> float:
        """Seconds until the next call.

        A Lease that expired is still renewed: it is ours again as soon as the server answers,
        unless another engine took it.
        """
        try:
            if not (self._holder == self._lock.identity and self._renew()):
                self._observed = seen = observe(self._observed, self._lock.get(), boottime())
                left = seen.remaining(self._lock.identity, boottime(), self._lock.duration)
                if left:
                    self._stand_by(seen, left)
                    self._failures = 0
                    return seen.next_look(left, self._lock.duration)
                if not stop.is_set():
                    self._take(seen)
            self._failures = 0
        except EngineError as error:
            return self._wait_after(error)
        return self._until_renewal()

    def _renew(self) -> bool:
        """Whether the Lease is ours still; False if it has to be read first."""
        try:
            self._lock.update()
        except (ConflictError, AlreadyExistsError):
            return False
        return True

    def _stand_by(self, seen: ObservedLease, left: float) -> None:
        """Errors: OwnershipError when the holder is alive, and this engine doesn't wait."""
        self._holder = holder = seen.record.holder
        self._unconfirmed_until = 0.0 if seen.renewed else boottime() + left
        if seen.renewed and not self._wait:
            raise OwnershipError(
                f'source "{self._lock.source}" is held by another engine: {holder}',
                hint="--leader-elect waits, or give this engine its own --source",
            )
        if self._reported_holder != holder:
            self._reported_holder = holder
            looking = f"was last held by {holder}: looking whether it lives, for {left:.0f} s"
            waiting = f"is held by {holder}: standing by, for {left:.0f} s unless it is renewed"
            self._emit(Notice(f"{self._what} {waiting if self._wait else looking}"))

    def _take(self, seen: ObservedLease) -> None:
        """Errors: ConflictError or AlreadyExistsError when another engine was quicker."""
        self._lock.update()
        former = seen.record.holder or self._reported_holder
        self._holder, self._unconfirmed_until = self._lock.identity, 0.0
        self._reported_holder, self._observed = "", None
        if former not in ("", self._lock.identity):
            self._emit(Notice(f"took {self._what} over from {former}"))

    def _wait_after(self, error: EngineError) -> float:
        """Seconds until the next try. Errors: `error`, where waiting can't mend it."""
        leads = self._holder == self._lock.identity
        if not leads and isinstance(error, ForbiddenError):
            raise ForbiddenError(
                error.cause, hint=_RIGHTS, status=error.status, reason=error.reason
            ) from error
        if not leads and not error.retryable:
            raise error
        self._failures += 1
        trouble = "can't be renewed" if leads else "is out of reach"
        if self._failures == (_REPORT_RENEWALS if leads else _REPORT_LOOKS):
            self._emit(Notice(f"the Lease of {self._what} {trouble}: {error}"))
        if leads:
            return self._until_renewal()
        wait = backoff(self._failures, first=_FIRST_WAIT, longest=_MAX_WAIT)
        return max(wait, error.retry_after)

    def _until_renewal(self) -> float:
        """Seconds to wait; never longer than we hold, so that a loss is reported in time."""
        pause = self._lock.duration / (_RETRIES if self._failures else _RENEWALS)
        left = self._lock.remaining
        return min(pause, left) if left else pause

    def _report_change(self) -> None:
        leads = self.is_leader
        if leads != self._leads:
            self._leads = leads
            self._on_change(leads)
            self._emit(LeaderChanged(leads, self.holder))
