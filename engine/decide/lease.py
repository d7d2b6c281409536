"""Who may act for a source: what a Lease says, and what the next engine may do about it.

A holder's clock and ours may differ by hours, so its `renewTime` is never compared with a time of
ours: it is a token that changes while the holder lives, and our own clock runs from when we first
saw it. The holder counts from before it wrote, so it always gives up first.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from engine.times import micro_time
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

_HASH_DIGITS = 10
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PLAIN = re.compile(rf"{_PART}(\.{_PART})*")
_HASHED = re.compile(rf"(^|.*-)[0-9a-f]{{{_HASH_DIGITS}}}")
_LIVELY, _SHORTEST_LOOK, _LONGEST_LOOK = 15, 0.1, 1.0

MAX_DURATION = 3600.0
"""Seconds; no engine holds a Lease for longer. client-go goes by whatever duration stands there,
and so waits for ever for a holder that nobody is; here one that no engine writes says nothing.
"""
_MAX_TRANSITIONS = 2**31 - 1
"""The API's own limit of the field."""

LeaseObject = dict[str, Any]


class LeaseStatus(Enum):
    """Whether a Lease can be acquired."""

    FREE = "free"
    """Nobody holds it."""
    OURS = "ours"
    """This engine holds it."""
    UNCONFIRMED = "unproved"
    """Another holds it, and has not been seen to renew it yet."""
    ALIVE = "alive"
    """Another holds it, and renews it."""
    EXPIRED = "expired"
    """Another held it, and has not renewed it in time."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says."""

    holder: str = ""
    """holderIdentity; "" if nobody holds it."""
    seconds: int = 0
    """leaseDurationSeconds, at most an hour; 0 where it doesn't say how long it is good for."""
    renewed: str = ""
    """renewTime, only ever compared for equality."""
    transitions: int = 0
    """leaseTransitions: how often it changed hands."""


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A Lease as this engine has seen it, by its own clock."""

    record: LeaseRecord
    """What it says."""
    since: float
    """When it was first seen to say so."""
    changed: bool = False
    """Whether it was seen to change, which proves that its holder is alive."""

    def standing(self, identity: str, now: float, duration: float) -> LeaseStatus:
        """What can be said of the Lease at `now`; `duration` counts where it says none."""
        if not self.record.holder:
            return LeaseStatus.FREE
        if self.record.holder == identity:
            return LeaseStatus.OURS
        if now >= self.expires(duration):
            return LeaseStatus.EXPIRED
        return LeaseStatus.ALIVE if self.changed else LeaseStatus.UNCONFIRMED

    def expires(self, duration: float) -> float:
        """When it has expired unless it is renewed; `duration` counts where it says none."""
        return self.since + (self.record.seconds or duration)

    def next_look(self, now: float, duration: float) -> float:
        """Seconds until a look is worth a request: several per renewal, and when it expires."""
        often = (self.record.seconds or duration) / _LIVELY
        often = min(max(often, _SHORTEST_LOOK), _LONGEST_LOOK)
        return max(0.0, min(often, self.expires(duration) - now))


def read_lease_record(lease: LeaseObject | None) -> LeaseRecord:
    """What a Lease says; a missing one, or a field that makes no sense, says nothing."""
    spec = _spec(lease)
    return LeaseRecord(
        str(spec.get("holderIdentity") or ""),
        _count(spec.get("leaseDurationSeconds"), MAX_DURATION),
        str(spec.get("renewTime") or ""),
        _count(spec.get("leaseTransitions"), _MAX_TRANSITIONS),
    )


def observe(before: ObservedLease | None, record: LeaseRecord, now: float) -> ObservedLease:
    """Our clock starts again with every change of what the Lease says."""
    if before is None:
        return ObservedLease(record, now)
    return before if before.record == record else ObservedLease(record, now, changed=True)


def acquired(
    lease: LeaseObject | None,
    *,
    namespace: str,
    source: str,
    identity: str,
    duration: float,
    now: datetime,
) -> LeaseObject:
    """The Lease to write so that `identity` holds it: taken when it was another's, else renewed."""
    before = read_lease_record(lease)
    spec = {
        "holderIdentity": identity,
        "leaseDurationSeconds": max(1, math.ceil(duration)),
        "renewTime": micro_time(now),
    }
    if before.holder != identity:
        spec["acquireTime"] = spec["renewTime"]
        transitions = before.transitions + (lease is not None)
        spec["leaseTransitions"] = min(transitions, _MAX_TRANSITIONS)
    if lease is None:
        metadata = {"name": lease_name(source), "namespace": namespace}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    return _written(lease, spec, source)


def released(lease: LeaseObject, *, source: str, now: datetime) -> LeaseObject:
    """The Lease to write so that nobody holds it."""
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(now)}
    return _written(lease, spec, source)


def lease_name(source: str) -> str:
    """Name of a source's Lease: two sources never share one.

    A source is a label's value and may be no name of an object; such a one is spelled otherwise
    and gets a hash, and so does one that looks as if it had a hash.
    """
    if _PLAIN.fullmatch(source) and not _HASHED.fullmatch(source):
        return f"engine-{source}"
    words = re.sub("[^a-z0-9]+", "-", source.lower()).strip("-")
    digest = hashlib.sha256(source.encode()).hexdigest()[:_HASH_DIGITS]
    return "-".join(filter(None, ("engine", words, digest)))


def _written(lease: LeaseObject, spec: Mapping[str, Any], source: str) -> LeaseObject:
    metadata = lease["metadata"]
    labels = {**(metadata.get("labels") or {}), MANAGED_BY: MANAGER, SOURCE: source}
    return {
        **lease,
        "metadata": {**metadata, "labels": labels},
        "spec": {**_spec(lease), **spec},
    }


def _spec(lease: LeaseObject | None) -> dict[str, Any]:
    spec = (lease or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def _count(value: Any, most: float) -> int:
    return value if isinstance(value, int) and 0 < value <= most else 0
