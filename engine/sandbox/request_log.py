"""What was asked of the server: so that a test can count writes, lists and retries."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_KEPT = 200_000


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One answered request. ``code`` 0: the connection was closed without an answer.

    ``strict``: it asked for unknown fields to be refused.
    """

    verb: str
    path: str
    resource: str
    namespace: str
    name: str
    user_agent: str
    code: int
    time: float
    dry_run: bool = False
    strict: bool = False

    @property
    def is_write(self) -> bool:
        """Whether it meant to change something."""
        return self.verb in WRITES and not self.dry_run


class RequestLog:
    """The latest requests, oldest first; a watch is noted when it begins."""

    def __init__(self) -> None:
        self._records: deque[LoggedRequest] = deque(maxlen=_KEPT)

    def add(self, record: LoggedRequest) -> None:
        """Note one more."""
        self._records.append(record)

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(list(self._records))

    def __len__(self) -> int:
        return len(self._records)

    def clear(self) -> None:
        """Forget all of them."""
        self._records.clear()

    def where(self, verb: str | None = None, resource: str | None = None) -> list[LoggedRequest]:
        """Those of this verb and resource; None means any."""
        return [
            record
            for record in self
            if verb in (None, record.verb) and resource in (None, record.resource)
        ]

    @property
    def writes(self) -> list[LoggedRequest]:
        """Requests that meant to change something; dry runs and reviews aren't among them."""
        return [record for record in self if record.is_write]

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """How often each (verb, resource) was asked."""
        return Counter((record.verb, record.resource) for record in self)
