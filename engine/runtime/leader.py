"""One engine at a time acts for a source: it holds the source's Lease and renews it.

Written by hand because the client's own leader election can neither be stopped nor give up.
"""

import os
import secrets
import socket
import threading
from collections.abc import Callable

from engine.cluster.client import Client
from engine.decide.lease import Sighting, Standing, sight
from engine.errors import EngineError, ForbiddenError, LeaseHeldError
from engine.runtime.backoff import backoff
from engine.runtime.held_lease import HeldLease, local_clock

_RENEWALS, _RETRIES = 3, 5
_RELEASE_WITHIN = 2.0
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_TELL_FAILURES_OF_ACQUIRE, _TELL_FAILURES_OF_RENEWAL = 3, 2
_RIGHTS = "leader election needs get, create and update on leases in coordination.k8s.io"


class Leader:
    """Holds the Lease of `source` in `namespace` for this engine.

    Guarantees: of two engines that both may use Leases, at most one `holds` at any time, whatever
    their clocks show and however long they slept; an engine that may not use them is told so.
    While it holds, it writes once every third of `duration`. Assumptions: `identity` is nobody
    else's; nobody deletes or edits the Lease by hand; clocks run at about the same speed.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        source: str,
        waits: bool,
        duration: float = 15.0,
        identity: str,
        say: Callable[[str], None],
    ) -> None:
        self._lease = HeldLease(client, namespace, source, identity, duration)
        self._source = source
        self._waits = waits
        self._duration = duration
        self._identity = identity
        self._say = say
        self._what = f'source "{source}"'
        self._holder = ""
        self._told = ""
        self._unguarded = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def holds(self) -> bool:
        """Renewed within `duration`, by a local clock that counts sleep too."""
        return self._unguarded or self._lease.left > 0

    @property
    def holder(self) -> str:
        """Who was last known to hold the Lease; "" for nobody, or once our own hold has expired."""
        holder = self._holder
        return "" if holder == self._identity and not self.holds else holder

    def acquire(self, stopped: threading.Event) -> bool:
        """Wait until this engine holds the Lease: True; False once `stopped` is set.

        May be called again after `on_lost` named another holder. A server that is away is waited
        for. Errors: LeaseHeldError when another engine is seen alive and this one doesn't wait;
        ForbiddenError when it does, without the rights; what can't get better by waiting.
        """
        sighting: Sighting | None = None
        failures, self._told = 0, ""
        while not stopped.is_set():
            try:
                sighting = sight(sighting, self._lease.look(), local_clock())
                if self._may_take(sighting):
                    self._take(sighting)
                    return True
                failures, wait = 0, sighting.next_look(local_clock(), self._duration)
            except ForbiddenError as error:
                self._go_without(error)
                return True
            except EngineError as error:
                if not error.retryable:
                    raise
                failures += 1
                if failures == _TELL_FAILURES_OF_ACQUIRE:
                    self._say(f"the Lease of {self._what} is out of reach: {error}")
                wait = backoff(failures, first=_FIRST_WAIT, longest=_LONGEST_WAIT)
                wait = max(wait, getattr(error, "retry_after", 0.0))
            stopped.wait(wait)
        return False

    def start(
        self, on_lost: Callable[[str], None], on_regained: Callable[[], None] = lambda: None
    ) -> None:
        """Renew in a thread of its own, in which the callbacks are called.

        Guarantees: `on_lost("")` when `duration` is over without a renewal; then the thread goes
        on trying, and `on_regained()` says that it succeeded. `on_lost(holder)` when another engine
        holds the Lease, also after `on_lost("")`; then the thread is over, and `acquire` may be
        called again.
        """
        if self._unguarded:
            return
        self._ended = ended = threading.Event()
        self._thread = threading.Thread(
            target=self._keep, args=(ended, on_lost, on_regained), name="lease", daemon=True
        )
        self._thread.start()

    def release(self) -> None:
        """Give the Lease up so that the next engine needn't wait; at most 2 s.

        Guarantees: `holds` is False from now on. Errors: none; at worst the Lease expires.
        """
        until = local_clock() + _RELEASE_WITHIN
        self._ended.set()
        self._unguarded = False
        self._lease.give_up(until)
        if self._holder == self._identity:
            self._holder = ""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(max(0.0, until - local_clock()))

    def _may_take(self, sighting: Sighting) -> bool:
        """False while another engine may be alive. Errors: LeaseHeldError."""
        standing = sighting.standing(self._identity, local_clock(), self._duration)
        if standing in (Standing.FREE, Standing.OURS, Standing.EXPIRED):
            self._holder = ""
            return True
        self._holder = holder = sighting.hold.holder
        if standing is Standing.ALIVE and not self._waits:
            raise LeaseHeldError(self._source, holder)
        if self._told != holder:
            self._told = holder
            left = sighting.expires(self._duration) - local_clock()
            looking = f"was last held by {holder}: looking whether it lives, for {left:.0f} s"
            waiting = f"is held by {holder}: standing by"
            self._say(f"{self._what} {waiting if self._waits else looking}")
        return False

    def _take(self, sighting: Sighting) -> None:
        """Errors: ConflictError or AlreadyExistsError when another engine was quicker."""
        self._lease.claim()
        self._lease.held = True
        self._holder = self._identity
        former = sighting.hold.holder or self._told
        if former not in ("", self._identity):
            self._say(f"took {self._what} over from {former}")

    def _go_without(self, error: ForbiddenError) -> None:
        """Errors: ForbiddenError where a second engine is wanted, or known."""
        if self._waits or self._holder not in ("", self._identity):
            raise ForbiddenError(
                error.cause, hint=_RIGHTS, status=error.status, reason=error.reason
            ) from error
        self._unguarded = True
        self._holder = self._identity
        self._say(f"a second engine of {self._what} can't be noticed: {error.cause} ({_RIGHTS})")

    def _keep(
        self,
        ended: threading.Event,
        on_lost: Callable[[str], None],
        on_regained: Callable[[], None],
    ) -> None:
        holding, failures = True, 0

        def tell() -> None:
            nonlocal holding
            if self.holds != holding and not ended.is_set():
                holding = not holding
                if holding:
                    on_regained()
                else:
                    on_lost("")

        while not ended.wait(self._until_renewal(failures)):
            tell()
            try:
                other = self._lease.renew(ended)
            except Exception as error:  # noqa: BLE001 - whatever it is, the Lease is lost without us
                failures += 1
                if failures == _TELL_FAILURES_OF_RENEWAL:
                    words = error if isinstance(error, EngineError) else repr(error)
                    self._say(f"the Lease of {self._what} can't be renewed: {words}")
            else:
                failures = 0
                if other:
                    self._holder = other
                    if not ended.is_set():
                        on_lost(other)
                    return
            tell()

    def _until_renewal(self, failures: int) -> float:
        """Seconds to wait; never longer than we hold, so that a loss is told in time."""
        pause = self._duration / (_RETRIES if failures else _RENEWALS)
        return min(pause, self._lease.left) if self.holds else pause


def default_identity() -> str:
    """Tells this process apart from every other, and people where it runs."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
