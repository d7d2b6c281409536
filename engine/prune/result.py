"""What became of each object, told one by one, and what a whole run came to."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from engine.errors import EngineError, ExitCode
from engine.refs import Ref


class PruneAction(StrEnum):
    """What became of an object."""

    DELETED = "deleted"
    WOULD_DELETE = "would-delete"
    KEPT = "kept"
    PROTECTED = "protected"
    INVALID = "invalid"
    FAILED = "failed"


class KeepReason(StrEnum):
    """Why objects stay, in the words of the summary."""

    NOT_EXPIRED = "not expired"
    OWNED = "with a living owner"
    DELETING = "being deleted"
    LAST_FAILED = "among the last failed"
    OVER_BUDGET = "left by the limit of deletes"
    POD_LEFT = "with a pod left"
    CHANGED = "changed meanwhile"


@dataclass(frozen=True, slots=True)
class PruneEntry:
    """One line of the result; `why` and `until` only for what is kept."""

    ref: Ref
    action: PruneAction
    reason: str
    why: KeepReason | None = None
    until: datetime | None = None


OnEntry = Callable[[PruneEntry], None]


@dataclass(frozen=True, slots=True)
class PruneResult:
    """Counts only: the objects themselves were told, so that memory doesn't grow with them."""

    actions: Mapping[PruneAction, int] = field(default_factory=dict)
    kept: Mapping[KeepReason, int] = field(default_factory=dict)
    without_ttl: int = 0
    next_expiry: datetime | None = None
    unnamed: int = 0
    """Objects that only TTLs of other cleaners mark, which nobody has named."""
    unnamed_ttls: frozenset[str] = frozenset()
    """The names of those TTLs."""
    system: Mapping[str, int] = field(default_factory=dict)
    """Objects that would have been judged, by the `kube-*` namespace that nobody has named."""
    warnings: tuple[str, ...] = ()
    """What the next run goes on with."""
    errors: tuple[EngineError, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """OK only if everything that should go went, or is left to the next run."""
        codes = [error.exit_code for error in self.errors]
        if self.actions.get(PruneAction.FAILED):
            codes.append(ExitCode.JOB_FAILED)
        return max(codes, default=ExitCode.OK)


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What became of objects at the end of a reconcile, without those that simply stay.

    A failed removal is an error, since somebody asked for it. What the TTL rule couldn't delete is
    only among the entries: it has nothing to do with these jobs, and the next pass tries again.
    """

    entries: tuple[PruneEntry, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[EngineError, ...] = ()
    marked: int = 0
    """Records that were found to be without a spec, or with one again, and were told so."""

    @property
    def exit_code(self) -> ExitCode:
        """That of the worst error."""
        return max((error.exit_code for error in self.errors), default=ExitCode.OK)

    def map_text(self, change: Callable[[str], str]) -> "PruneReport":
        """The same with `change` applied to its free text."""
        return replace(
            self,
            entries=tuple(replace(entry, reason=change(entry.reason)) for entry in self.entries),
            warnings=tuple(map(change, self.warnings)),
            errors=tuple(error.map_text(change) for error in self.errors),
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each object that is gone or should be, for each warning and each error."""
        lines = [f"{entry.ref} {entry.action}: {entry.reason}" for entry in self.entries]
        lines += [f"warning: {warning}" for warning in self.warnings]
        return (*lines, *(f"error: {error}" for error in self.errors))


class ResultCollector:
    """Counts entries and hands them on; safe to use from several threads."""

    def __init__(self, on_entry: OnEntry) -> None:
        self._on_entry = on_entry
        self._lock = threading.Lock()
        self._actions: Counter[PruneAction] = Counter()
        self._kept: Counter[KeepReason] = Counter()
        self._without_ttl = 0
        self._unnamed = 0
        self._unnamed_ttls: frozenset[str] = frozenset()
        self._system: Counter[str] = Counter()
        self._warnings: list[str] = []
        self._next: datetime | None = None
        self._errors: list[EngineError] = []

    def add(self, entry: PruneEntry) -> None:
        """One object's end."""
        with self._lock:
            self._actions[entry.action] += 1
            if entry.why is not None:
                self._kept[entry.why] += 1
            if entry.until is not None and (self._next is None or entry.until < self._next):
                self._next = entry.until
            self._on_entry(entry)

    def add_without_ttl(self) -> None:
        """One more object that is none of our business."""
        self._without_ttl += 1

    def add_unnamed(self, names: frozenset[str]) -> None:
        """One more object that carries these TTLs alone, which don't count."""
        self._unnamed += 1
        self._unnamed_ttls |= names

    def add_system(self, namespace: str) -> None:
        """One more object with a TTL in a namespace of Kubernetes' own."""
        self._system[namespace] += 1

    def add_warning(self, warning: str) -> None:
        """What is no error, and somebody may want to know."""
        self._warnings.append(warning)

    def add_error(self, error: EngineError) -> None:
        """What is wrong with the run rather than with one object."""
        with self._lock:
            self._errors.append(error)

    def result(self) -> PruneResult:
        """The counts so far."""
        with self._lock:
            return PruneResult(
                actions=dict(self._actions),
                kept=dict(self._kept),
                without_ttl=self._without_ttl,
                next_expiry=self._next,
                unnamed=self._unnamed,
                unnamed_ttls=self._unnamed_ttls,
                system=dict(self._system),
                warnings=tuple(self._warnings),
                errors=tuple(self._errors),
            )
