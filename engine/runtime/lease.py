"""The pure half of membership: what a Lease says, and how long its holder is waited for.

Clocks may differ by hours, so a `renewTime` is never compared with our own time. It is a token that
changes while the holder renews. Our clock runs from the moment when we first saw it. The holder
counts from before its write, so it always stops leading first.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.times import micro_time, parse_time
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

_HASH_DIGITS = 10
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PLAIN = re.compile(rf"{_PART}(\.{_PART})*")
_HASHED = re.compile(rf"(^|.*-)[0-9a-f]{{{_HASH_DIGITS}}}")
_LOOKS_PER_TERM, _MIN_LOOK, _MAX_LOOK = 15, 0.1, 1.0

MAX_MEMBERS = 64
"""Engines of one source; a further one waits for a Lease."""
MAX_DURATION = 3600.0
"""Seconds; no engine writes a longer duration, and a longer one is read as none."""

LeaseObject = dict[str, Any]


class LeaseRecord(Struct, frozen=True):
    """The fields of a Lease that count."""

    holder: str = ""
    """holderIdentity; "" for a Lease without a holder."""
    seconds: int = 0
    """leaseDurationSeconds, at most an hour; 0 for none."""
    renewed: str = ""
    """renewTime, only ever compared for equality."""


class ObservedLease(Struct, frozen=True):
    """A Lease as this engine has seen it, by its own clock."""

    record: LeaseRecord
    since: float
    """When the record was first seen."""
    renewed: bool = False
    """Whether the record was seen to change, which proves that its holder is alive."""

    def remaining(self, identity: str, now: float, duration: float) -> float:
        """Seconds for which another holder is waited for; 0 if `identity` may take the Lease.

        Never longer than `duration`, our own, whatever the Lease says.
        """
        if self.record.holder in ("", identity):
            return 0.0
        return max(0.0, self.since + min(self.record.seconds or duration, duration) - now)


def next_look(duration: float) -> float:
    """Seconds until the next look at the Leases of others: several per renewal."""
    return min(max(duration / _LOOKS_PER_TERM, _MIN_LOOK), _MAX_LOOK)


def is_stale(record: LeaseRecord, now: datetime, duration: float) -> bool:
    """Whether a Lease is long over by its own words, so that its number may be used again.

    No more is decided by that: where a clock is wrong, its holder takes another one.
    """
    try:
        renewed = parse_time(record.renewed)
        return renewed is None or (now - renewed).total_seconds() > 2 * duration
    except (ValueError, OverflowError):
        return True


def read_lease_record(lease: LeaseObject | None) -> LeaseRecord:
    """The record of a Lease; a field that makes no sense counts as missing."""
    spec = _spec(lease)
    seconds = spec.get("leaseDurationSeconds")
    return LeaseRecord(
        str(spec.get("holderIdentity") or ""),
        seconds if isinstance(seconds, int) and 0 < seconds <= MAX_DURATION else 0,
        str(spec.get("renewTime") or ""),
    )


def observe(before: ObservedLease | None, record: LeaseRecord, now: float) -> ObservedLease:
    """Our clock starts again with every change of the record.

    A Lease that was deleted, rather than released, may be held still: its holder makes it again.
    """
    if before is None:
        return ObservedLease(record, now)
    deleted = record == LeaseRecord() and bool(before.record.holder)
    if deleted:
        record = replace(before.record, renewed="")
    renewed = before.renewed or not deleted
    return before if before.record == record else ObservedLease(record, now, renewed)


def with_holder(
    lease: LeaseObject, holder: str, source: str, duration: float, now: datetime
) -> LeaseObject:
    """The Lease to write so that `holder` has it: a change of holder, a renewal, or ("") none."""
    metadata, time = lease["metadata"], micro_time(now)
    spec = {**_spec(lease), "holderIdentity": holder, "renewTime": time}
    spec["leaseDurationSeconds"] = max(1, math.ceil(duration))
    if holder not in ("", read_lease_record(lease).holder):
        spec["acquireTime"] = time
    labels = {**(metadata.get("labels") or {}), MANAGED_BY: MANAGER, SOURCE: source}
    return {
        **lease,
        "apiVersion": "coordination.k8s.io/v1",  # no item of a list says so
        "kind": "Lease",
        "metadata": {**metadata, "labels": labels},
        "spec": spec,
    }


def lease_name(source: str, number: int = 0) -> str:
    """Name of one of a source's Leases: two sources never share one.

    A source is a label's value, and some are no name of an object: these are spelled otherwise and
    get a hash. So does a source that looks as if it had one, and a Lease beyond the first.
    """
    source = f"{source}/{number}" if number else source
    if _PLAIN.fullmatch(source) and not _HASHED.fullmatch(source):
        return f"engine-{source}"
    words = re.sub("[^a-z0-9]+", "-", source.lower()).strip("-")
    digest = hashlib.sha256(source.encode()).hexdigest()[:_HASH_DIGITS]
    return "-".join(filter(None, ("engine", words, digest)))


def lease_number(lease: LeaseObject, source: str) -> int | None:
    """Which of a source's Leases it is, by its name; None for any other."""
    return _numbers(source).get(lease["metadata"]["name"])


@cache
def _numbers(source: str) -> Mapping[str, int]:
    return {lease_name(source, number): number for number in range(MAX_MEMBERS)}


def owner(key: str, members: Iterable[int]) -> int | None:
    """Whose `key` is: rendezvous hashing moves no key but those of who comes or goes."""

    def weight(member: int) -> bytes:
        return hashlib.blake2b(f"{member}/{key}".encode(), digest_size=8).digest()

    return max(members, key=weight, default=None)


def _spec(lease: LeaseObject | None) -> dict[str, Any]:
    spec = (lease or {}).get("spec")
    return spec if isinstance(spec, dict) else {}
