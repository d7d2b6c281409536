"""What time the API server has, as far as the Date headers of its answers tell."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_TOLERANCE = timedelta(seconds=2)


class ServerClock:
    """Our own time while the server's agrees within 2 s. Safe to use from several threads."""

    def __init__(self, wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._wall_clock = wall_clock
        self._offset = timedelta()
        self._date = ""

    def now(self) -> datetime:
        """The server's time."""
        return self._wall_clock() + self._offset

    def update(self, date: str | None) -> None:
        """An answer came with this Date header. Errors: none; one that is no date says nothing."""
        if not date or date == self._date:
            return
        self._date = date
        try:
            offset = parsedate_to_datetime(date) - self._wall_clock()
        except (ValueError, TypeError):
            return
        self._offset = offset if abs(offset) > _TOLERANCE else timedelta()
