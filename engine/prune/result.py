"""What became of each object, told one by one, and what a whole run came to."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from engine.errors import EngineError, ExitCode
from engine.refs import Ref


class PruneAction(StrEnum):
    DELETED = "deleted"
    WOULD_DELETE = "would-delete"
    KEPT = "kept"
    PROTECTED = "protected"
    INVALID = "invalid"
    FAILED = "failed"


class Why(StrEnum):
    """Why objects stay, in the words of the summary."""

    YOUNG = "not expired"
    OWNED = "with a living owner"
    DELETING = "being deleted"
    LAST_FAILED = "among the last failed"
    BRAKED = "left by the limit of deletes"
    CHANGED = "changed meanwhile"


@dataclass(frozen=True, slots=True)
class PruneEntry:
    """One line of the result; `why` and `until` only for what is kept."""

    ref: Ref
    action: PruneAction
    reason: str
    why: Why | None = None
    until: datetime | None = None


Tell = Callable[[PruneEntry], None]


@dataclass(frozen=True, slots=True)
class PruneResult:
    """Counts only: the objects themselves were told, so that memory doesn't grow with them."""

    actions: Mapping[PruneAction, int] = field(default_factory=dict)
    kept: Mapping[Why, int] = field(default_factory=dict)
    unmarked: int = 0
    next_expiry: datetime | None = None
    errors: tuple[EngineError, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """OK only if everything that should go went."""
        codes = [error.exit_code for error in self.errors]
        if self.actions.get(PruneAction.FAILED):
            codes.append(ExitCode.JOB_FAILED)
        return max(codes, default=ExitCode.OK)


class Tally:
    """Counts entries and tells them; safe to use from several threads."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._actions: Counter[PruneAction] = Counter()
        self._kept: Counter[Why] = Counter()
        self._unmarked = 0
        self._next: datetime | None = None
        self._errors: list[EngineError] = []

    def add(self, entry: PruneEntry) -> None:
        with self._lock:
            self._actions[entry.action] += 1
            if entry.why is not None:
                self._kept[entry.why] += 1
            if entry.until is not None and (self._next is None or entry.until < self._next):
                self._next = entry.until
            self._tell(entry)

    def add_unmarked(self) -> None:
        self._unmarked += 1

    def add_error(self, error: EngineError) -> None:
        with self._lock:
            self._errors.append(error)

    def result(self) -> PruneResult:
        with self._lock:
            return PruneResult(
                dict(self._actions),
                dict(self._kept),
                self._unmarked,
                self._next,
                tuple(self._errors),
            )
