"""What time the API server has, as far as the Date headers of its answers tell."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from engine.boottime import boottime

_TOLERANCE = timedelta(seconds=2)
_RESOLUTION = timedelta(seconds=1)
"""A Date has no fractions."""


class ServerClock:
    """Our own time at an answer whose Date agrees within 2 s, else that Date; and on from there
    by a clock that nobody sets.

    Guarantees: safe to use from several threads.
    """

    def __init__(
        self,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        boottime: Callable[[], float] = boottime,
    ) -> None:
        self._wall_clock = wall_clock
        self._boottime = boottime
        self._known = wall_clock(), boottime()
        """The server's time, and when that was."""
        self._date = ""

    def now(self) -> datetime:
        """The server's time."""
        time, at = self._known
        return time + timedelta(seconds=self._boottime() - at)

    def update(self, date: str | None, asked_at: float) -> None:
        """An answer came with this Date header, to a request that began at `asked_at`.

        The answer may have been on its way all that time, longest where the machine slept.
        Errors: none; what is no date says nothing.
        """
        if not date or date == self._date:
            return
        self._date = date
        try:
            earliest = parsedate_to_datetime(date)
        except (ValueError, TypeError):
            return
        if earliest.tzinfo is None:
            return
        ours, now = self._wall_clock(), self._boottime()
        took = timedelta(seconds=now - asked_at)
        if -_TOLERANCE <= ours - earliest <= took + _TOLERANCE:
            self._known = ours, now
        elif not timedelta() <= self.now() - earliest <= took + _RESOLUTION:
            self._known = earliest, now
