"""The engines of a source share its jobs: each holds a Lease, and a job belongs to one of them.

Every engine sees the same Leases, so that each can say by itself whose a job is (rendezvous
hashing). Where an engine comes or goes, no jobs move but those that it gets or had. That two act
for one job for a moment, while they learn of it, is harmless: its record is written by
compare-and-swap. The Leases are renewed as in client-go's leader election, whose one leader is the
case of one engine. `engine.runtime.lease` has the pure half.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import (
    ConflictError,
    EngineError,
    ForbiddenError,
    NotFoundError,
    OwnershipError,
)
from engine.runtime.lease import (
    MAX_MEMBERS,
    LeaseObject,
    LeaseRecord,
    ObservedLease,
    is_stale,
    lease_name,
    lease_number,
    next_look,
    observe,
    owner,
    read_lease_record,
    with_holder,
)
from engine.runtime.retry import backoff
from engine.telemetry.events import Emit, LeaderChanged, Notice
from engine.times import boottime

_RENEWALS, _RETRIES = 3, 5
"""How often a Lease is renewed within its duration, and how often after a failure."""
_REQUEST_TIMEOUT, _MIN_TIMEOUT = 5.0, 0.1
_RELEASE_TIMEOUT, _RETRY_RELEASE = 2.0, 0.1
_STALL_TIMEOUT = 60.0
_FIRST_WAIT, _MAX_WAIT = 0.1, 5.0
_REPORT_LOOKS, _REPORT_RENEWALS = 3, 2
"""How many failures in a row are reported."""
_RIGHTS = "the engine needs list, create and update on leases in coordination.k8s.io"


def _new_identity() -> str:
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


class LeaseLock(Struct, eq=False):
    """One engine's hold on a Lease of `source` in `namespace`; used from one thread.

    The Leases of a source are numbered. Guarantees: no request takes longer than 5 s, nor than the
    hold lasts.
    """

    client: Client
    namespace: str
    source: str
    duration: float
    identity: str = field(default_factory=_new_identity)
    """Unique to this process; people read from it where the engine runs."""
    _leases: dict[int, LeaseObject] = {}
    _expires: float = 0.0
    """By `boottime`: another engine may begin while this machine sleeps."""
    _may_be_ours: bool = False

    @property
    def remaining(self) -> float:
        """Seconds until our hold expires, 0 without one. May be asked from any thread."""
        return max(0.0, self._expires - boottime())

    def list(self, timeout: float | None = None) -> dict[int, LeaseRecord]:
        """Read every Lease of the source: by its name, for labels can be taken off.

        Errors: any of the client's.
        """
        path, timeout = api.LEASES.path(self.namespace), timeout or self._timeout
        items = api.list_page(self.client, path, [], timeout=timeout)["items"]
        named = ((lease_number(item, self.source), item) for item in items)
        self._leases = {number: item for number, item in named if number is not None}
        return {number: read_lease_record(item) for number, item in self._leases.items()}

    def update(self, number: int) -> None:
        """Write this Lease in our name. The hold counts from before the write.

        Errors: ConflictError or AlreadyExistsError when the Lease has changed since it was read.
        """
        began, now = boottime(), self.client.now()
        new = {"metadata": {"name": lease_name(self.source, number), "namespace": self.namespace}}
        lease = self._leases.get(number, new)
        mine = with_holder(lease, self.identity, self.source, self.duration, now)
        self._may_be_ours = True  # also if the answer is lost
        self._leases[number] = self._write(mine, self._timeout)
        self._expires = began + self.duration

    def lose(self) -> None:
        """Another engine has the Lease that was ours."""
        self._expires = 0.0

    def is_stale(self, record: LeaseRecord) -> bool:
        """Whether the Lease was given up by the server's clock, which engines write."""
        return is_stale(record, self.client.now(), self.duration)

    def release(self, timeout: float) -> None:
        """Leave the Lease to the next engine. Errors: none; after `timeout` it is left to expire.

        It is read first: a request of ours that timed out may have been carried out.
        """
        until = boottime() + timeout
        self._expires = 0.0
        while self._may_be_ours and (left := until - boottime()) > 0:
            try:
                for number, record in self.list(max(_MIN_TIMEOUT, left)).items():
                    if record.holder == self.identity:
                        lease, now = self._leases[number], self.client.now()
                        empty = with_holder(lease, "", self.source, 1.0, now)
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
            return api.create(self.client, lease, timeout=timeout)
        try:
            return api.update(self.client, lease, timeout=timeout)
        except NotFoundError as error:  # deleted since it was read
            raise ConflictError(error.cause, status=error.status, reason=error.reason) from None


class Membership(Struct, eq=False):
    """Holds a Lease of the source, and knows which others are held.

    Guarantees: an engine whose Lease could not be renewed in its duration owns nothing, however
    long it slept and whatever the clocks show. Another engine counts as alive for as long as our
    own Lease lasts after its Lease was seen to change, whatever the Lease says. A newcomer owns
    nothing until the others have had the time to see it. `on_change` is called with True and False
    in turn, beginning with True, as this engine begins or ceases to hold a Lease; `on_members`
    whenever jobs may have another owner. Assumptions: the engines of a source have the same lease
    duration; their clocks run at about the same speed.
    """

    lock: LeaseLock
    shares: bool
    """Without it, `run` ends while another engine is alive."""
    emit: Emit
    on_change: Callable[[bool], None]
    on_members: Callable[[], None] = lambda: None
    _seen: dict[int, ObservedLease] = {}
    _mine: int | None = None
    _members: tuple[int, ...] = ()
    """Whose jobs are theirs, this engine among them once it may act."""
    _acts_at: float = 0.0
    _renew_at: float = 0.0
    _reported: tuple[str, ...] = ()
    _failures: int = 0
    _leads: bool = False

    @property
    def _what(self) -> str:
        return f'source "{self.lock.source}"'

    @property
    def is_member(self) -> bool:
        """Whether the Lease was renewed within its duration, by a clock that counts sleep too."""
        return self.lock.remaining > 0

    @property
    def holder(self) -> str:
        """This engine while it holds a Lease, else the first that does; "" without one."""
        if self.is_member:
            return self.lock.identity
        return next((self._seen[number].record.holder for number in self._others()), "")

    @property
    def unheld(self) -> str:
        """Why no engine is known to follow the source; "" while this one or another does."""
        alive = any(self._seen[number].renewed for number in self._others())
        return "" if self.is_member or alive else "no engine is known to follow this source"

    def owns(self, key: str) -> bool:
        """Whether what is called so is this engine's to act for."""
        members = self._members
        return self.is_member and owner(key, members) == self._mine

    def run(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """Hold a Lease whenever that is possible until `stop` is set, then release it within 2 s.

        A server that is away is waited for. Errors: OwnershipError when another engine is seen
        alive and this one doesn't share; ForbiddenError without the rights; any other error that
        waiting can't mend.
        """
        try:
            while not stop.is_set():
                heartbeat(self.lock.duration + _STALL_TIMEOUT)
                self._report_change()
                wait = self._look_and_renew(stop)
                self._report_change()
                heartbeat(wait + _STALL_TIMEOUT)
                stop.wait(wait)
        finally:
            if stop.is_set():
                self._leads = False
                self.lock.release(_RELEASE_TIMEOUT)

    def _look_and_renew(self, stop: threading.Event) -> float:
        """Seconds until the next call."""
        lock = self.lock
        try:
            found, now = lock.list(), boottime()
            for number in found.keys() | self._seen.keys():
                record = found.get(number, LeaseRecord())
                self._seen[number] = observe(self._seen.get(number), record, now)
            self._find_own(found)
            others = self._others()
            if not (self.shares or self.is_member) and others:
                self._failures = 0
                return self._refuse(others)
            is_due = self._mine not in found or not self.is_member or now >= self._renew_at
            if is_due and not stop.is_set():
                self._hold(found, others)
            self._failures = 0
        except EngineError as error:
            return self._wait_after(error)
        self._set_members()
        left = self._others().values()  # one that may be gone is looked at once it would be
        often = min(next_look(lock.duration), *left) if left else lock.duration
        return max(0.0, min(often, self._renew_at - boottime()))

    def _find_own(self, found: Mapping[int, LeaseRecord]) -> None:
        """Which Lease is ours; one that was deleted is, too, and is made again."""
        mine, identity = self._mine, self.lock.identity
        if mine is not None and found.get(mine, LeaseRecord(identity)).holder != identity:
            self.lock.lose()
            mine = None
        if mine is None:  # the answer to a write may have been lost
            own = (number for number, record in found.items() if record.holder == identity)
            mine = min(own, default=None)
        self._mine = mine

    def _hold(self, found: Mapping[int, LeaseRecord], others: Mapping[int, float]) -> None:
        """Renew our Lease, or take one that is free.

        Errors: ConflictError or AlreadyExistsError when another engine was quicker.
        """
        number, now, pause = self._mine, boottime(), self.lock.duration / _RENEWALS
        if number is None:
            stale = {n for n in others if n in found and self.lock.is_stale(found[n])}
            free = (n for n in range(MAX_MEMBERS) if n not in others or n in stale)
            number = next(free, None)
        joins = not self.is_member
        if number is not None:
            self.lock.update(number)
        self._renew_at = now + pause
        if number is None:
            return
        former = found.get(number, LeaseRecord()).holder
        if joins:
            self._acts_at = now + pause if others.keys() - {number} else now
            if not self.shares and former not in ("", self.lock.identity):
                self.emit(Notice(f"took {self._what} over from {former}"))
        self._mine = number
        self._seen.pop(number, None)

    def _set_members(self) -> None:
        others = self._others().keys()
        acts = self._mine is not None and boottime() >= self._acts_at
        mine = {self._mine} if self._mine is not None and acts else set[int]()
        members = tuple(sorted(others | mine))
        if members == self._members:
            return
        self._members = members
        holders = (
            self.lock.identity if number == self._mine else self._seen[number].record.holder
            for number in members
        )
        names = tuple(sorted(holders))
        if len(names) > 1 and names != self._reported:
            words = f"is shared by {len(names)} engines: {', '.join(names)}"
            self.emit(Notice(f"{self._what} {words}"))
        elif len(self._reported) > 1:
            self.emit(Notice(f"{self._what} is this engine's alone"))
        self._reported = names
        self.on_members()

    def _others(self) -> dict[int, float]:
        """The Leases of engines that may be alive, each with the seconds for which it counts."""
        now, lock = boottime(), self.lock
        return {
            number: left
            for number, seen in sorted(self._seen.items())
            if (left := seen.remaining(lock.identity, now, lock.duration)) and number != self._mine
        }

    def _refuse(self, others: Mapping[int, float]) -> float:
        """Seconds until the next look. Errors: OwnershipError when a holder is alive."""
        number, left = max(others.items(), key=lambda one: (self._seen[one[0]].renewed, one[1]))
        holder = self._seen[number].record.holder
        if self._seen[number].renewed:
            raise OwnershipError(
                f'source "{self.lock.source}" is held by another engine: {holder}',
                hint="--leader-elect shares it, or give this engine its own --source",
            )
        if self._reported != (holder,):
            self._reported = (holder,)
            words = f"was last held by {holder}: looking whether it lives, for {left:.0f} s"
            self.emit(Notice(f"{self._what} {words}"))
        return min(next_look(self.lock.duration), left)

    def _wait_after(self, error: EngineError) -> float:
        """Seconds until the next try. Errors: `error`, where waiting can't mend it."""
        held = self._mine is not None
        if not held and isinstance(error, ForbiddenError):
            raise ForbiddenError(
                error.cause, hint=_RIGHTS, status=error.status, reason=error.reason
            ) from error
        if not held and not error.retryable:
            raise error
        self._failures += 1
        trouble = "can't be renewed" if held else "is out of reach"
        if self._failures == (_REPORT_RENEWALS if held else _REPORT_LOOKS):
            self.emit(Notice(f"the Lease of {self._what} {trouble}: {error}"))
        if held:
            pause, left = self.lock.duration / _RETRIES, self.lock.remaining
            return min(pause, left) if left else pause
        return max(backoff(self._failures, first=_FIRST_WAIT, longest=_MAX_WAIT), error.retry_after)

    def _report_change(self) -> None:
        leads = self.is_member
        if leads != self._leads:
            self._leads = leads
            self.on_change(leads)
            self.emit(LeaderChanged(leads, self.holder))
