"""Who follows the jobs of a source, as far as a Lease tells somebody who only looks at it.

Who wants to lead never compares a Lease's times with a clock of its own (`lease.py`). Who only
wants to know may do so, and says how old the news is.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.decide.lease import LeaseObject, lease_name, read_lease_record
from engine.times import parse_time
from engine.wellknown import SOURCE

_TOLERANCE = timedelta(seconds=15)
"""What clocks may differ by, and a renewal may be late."""


@dataclass(frozen=True, slots=True)
class Follower:
    """What the Lease of a source says."""

    source: str
    """The source."""
    namespace: str
    """The namespace of the Lease."""
    holder: str
    """Who holds it, or held it last; "" if it was given up."""
    renewed_at: datetime | None
    """When it was last written, by its holder's clock."""
    is_alive: bool
    """Whether it has been renewed in time."""


def read_follower(lease: LeaseObject, now: datetime) -> Follower | None:
    """None for a Lease that is no engine's."""
    metadata, record = lease["metadata"], read_lease_record(lease)
    source = (metadata.get("labels") or {}).get(SOURCE, "")
    if not source or metadata["name"] != lease_name(source):
        return None
    try:
        renewed = parse_time(record.renewed)
    except ValueError:
        renewed = None
    late = timedelta(seconds=record.seconds) + _TOLERANCE
    is_alive = bool(record.holder) and renewed is not None and now - renewed <= late
    return Follower(source, metadata.get("namespace", ""), record.holder, renewed, is_alive)
