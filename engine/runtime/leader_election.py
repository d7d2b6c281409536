"""One engine at a time acts for a source: it holds the source's Lease and renews it.

Written by hand because the client's own leader election can neither be stopped nor give up.
"""

import os
import secrets
import socket
import threading
from collections.abc import Callable

from engine.boottime import boottime
from engine.decide.lease import LeaseStatus, ObservedLease, observe
from engine.errors import EngineError, ForbiddenError, LeaseHeldError
from engine.runtime.backoff import backoff
from engine.runtime.lease_lock import LeaseLock
from engine.telemetry.events import Emit, LeaderChanged, Notice

_RENEWALS, _RETRIES = 3, 5
_RELEASE_TIMEOUT, _STALL_TIMEOUT = 2.0, 60.0
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_REPORT_FAILURES_OF_ACQUIRE, _REPORT_FAILURES_OF_RENEWAL = 3, 2
_RIGHTS = "leader election needs get, create and update on leases in coordination.k8s.io"


class LeaderElector:
    """Acquires the Lease, renews it, and acquires it again after another engine had it.

    Guarantees: of two engines that both may use Leases, at most one `is_leader` at any time,
    whatever their clocks show and however long they slept; an engine that may not use them is told
    so. While it leads, it writes once every third of the Lease's duration. `on_change` is called
    with True and False in turn, beginning with True. Assumptions: nobody deletes or edits the Lease
    by hand; clocks run at about the same speed.
    """

    name = "leader election"
    grace = _RELEASE_TIMEOUT + 1.0

    def __init__(
        self, lock: LeaseLock, *, wait: bool, emit: Emit, on_change: Callable[[bool], None]
    ) -> None:
        """`wait` stands by while another engine leads; without it `run` ends then."""
        self._lock = lock
        self._wait = wait
        self._emit = emit
        self._on_change = on_change
        self._what = f'source "{lock.source}"'
        self._holder = ""
        self._reported_holder = ""
        self._unconfirmed_until = 0.0
        """When the Lease expires of a holder that has not been seen to renew it; else 0."""
        self._without_lease = False
        self._leads = False

    @property
    def is_leader(self) -> bool:
        """Whether the Lease was renewed within its duration, by a clock that counts sleep too."""
        return self._without_lease or self._lock.remaining > 0

    @property
    def holder(self) -> str:
        """Who was last known to hold the Lease; "" for nobody, or once our own hold has expired."""
        holder = self._holder
        return "" if holder == self._lock.identity and not self.is_leader else holder

    @property
    def unknown_leader(self) -> str:
        """Why it isn't known who leads; "" while this engine does, or another one is seen alive."""
        if self.is_leader:
            return ""
        if not self.holder:
            return "nobody is known to lead this source"
        if not self._unconfirmed_until:
            return ""
        left = max(0.0, self._unconfirmed_until - boottime())
        return f"{self.holder} has not been seen to renew its Lease, which expires in {left:.0f} s"

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Lead whenever that is possible until `stop` is set, then release the Lease within 2 s.

        A server that is away is waited for. `heartbeat` is told how soon it is called again.
        Errors: LeaseHeldError when another engine is seen alive and this one doesn't wait;
        ForbiddenError when it does, without the rights; what can't get better by waiting.
        """
        try:
            while self._acquire(stop, heartbeat):
                self._renew_loop(stop, heartbeat)
        finally:
            if stop.is_set():
                self._release()

    def _acquire(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> bool:
        """Wait until this engine holds the Lease: True; False once `stop` is set."""
        sighting: ObservedLease | None = None
        failures, self._reported_holder = 0, ""
        while not stop.is_set():
            heartbeat(self._lock.duration + _STALL_TIMEOUT)
            self._report_change()
            try:
                sighting = observe(sighting, self._lock.get(), boottime())
                if self._can_acquire(sighting):
                    self._take(sighting)
                    return True
                failures, wait = 0, sighting.next_look(boottime(), self._lock.duration)
            except ForbiddenError as error:
                self._run_without_lease(error)
                return True
            except EngineError as error:
                if not error.retryable:
                    raise
                failures += 1
                if failures == _REPORT_FAILURES_OF_ACQUIRE:
                    self._say(f"the Lease of {self._what} is out of reach: {error}")
                wait = backoff(failures, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
                wait = max(wait, error.retry_after)
            heartbeat(wait + _STALL_TIMEOUT)
            stop.wait(wait)
        return False

    def _renew_loop(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Renew until another engine holds the Lease, or until `stop` is set.

        A Lease that expired is renewed still: it is ours again as soon as the server answers,
        unless another engine took it.
        """
        failures = 0
        self._report_change()
        while not stop.wait(self._until_renewal(failures)):
            heartbeat(self._lock.duration + _STALL_TIMEOUT)
            self._report_change()
            if self._without_lease:
                continue
            try:
                other = self._lock.renew(stop)
            except EngineError as error:
                failures += 1
                if failures == _REPORT_FAILURES_OF_RENEWAL:
                    self._say(f"the Lease of {self._what} can't be renewed: {error}")
            else:
                failures = 0
                if other:
                    self._holder = other
            self._report_change()
            if self._holder != self._lock.identity:
                return

    def _can_acquire(self, sighting: ObservedLease) -> bool:
        """False while another engine may be alive. Errors: LeaseHeldError."""
        standing = sighting.standing(self._lock.identity, boottime(), self._lock.duration)
        if standing in (LeaseStatus.FREE, LeaseStatus.OURS, LeaseStatus.EXPIRED):
            self._holder = ""
            return True
        self._holder = holder = sighting.record.holder
        expires = sighting.expires(self._lock.duration)
        self._unconfirmed_until = expires if standing is LeaseStatus.UNCONFIRMED else 0.0
        if standing is LeaseStatus.ALIVE and not self._wait:
            raise LeaseHeldError(self._lock.source, holder)
        if self._reported_holder != holder:
            self._reported_holder = holder
            left = expires - boottime()
            looking = f"was last held by {holder}: looking whether it lives, for {left:.0f} s"
            waiting = f"is held by {holder}: standing by, for {left:.0f} s unless it is renewed"
            self._say(f"{self._what} {waiting if self._wait else looking}")
        return False

    def _take(self, sighting: ObservedLease) -> None:
        """Errors: ConflictError or AlreadyExistsError when another engine was quicker."""
        self._lock.update()
        self._holder, self._unconfirmed_until = self._lock.identity, 0.0
        former = sighting.record.holder or self._reported_holder
        if former not in ("", self._lock.identity):
            self._say(f"took {self._what} over from {former}")

    def _run_without_lease(self, error: ForbiddenError) -> None:
        """Errors: ForbiddenError where a second engine is wanted, or known."""
        if self._wait or self._holder not in ("", self._lock.identity):
            raise ForbiddenError(
                error.cause, hint=_RIGHTS, status=error.status, reason=error.reason
            ) from error
        self._without_lease = True
        self._holder = self._lock.identity
        self._say(f"a second engine of {self._what} can't be noticed: {error.cause} ({_RIGHTS})")

    def _release(self) -> None:
        self._leads = self._without_lease = False
        if self._holder == self._lock.identity:
            self._holder = ""
        self._lock.release(_RELEASE_TIMEOUT)

    def _report_change(self) -> None:
        leads = self.is_leader
        if leads != self._leads:
            self._leads = leads
            self._on_change(leads)
            self._emit(LeaderChanged(leads, self.holder))

    def _until_renewal(self, failures: int) -> float:
        """Seconds to wait; never longer than we hold, so that a loss is reported in time."""
        pause = self._lock.duration / (_RETRIES if failures else _RENEWALS)
        left = self._lock.remaining
        return min(pause, left) if left else pause

    def _say(self, message: str) -> None:
        self._emit(Notice(message))


def default_identity() -> str:
    """Tells this process apart from every other, and people where it runs."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
