"""The result of pruning: one entry per object, and counts of a whole run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from engine.errors import EngineError, ExitCode
from engine.refs import Ref


class DryRun(StrEnum):
    """How far a run goes without deleting anything: `server` asks the server, too."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


class PruneAction(StrEnum):
    """What became of an object."""

    DELETED = "deleted"
    WOULD_DELETE = "would-delete"
    KEPT = "kept"
    PROTECTED = "protected"
    INVALID = "invalid"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PruneEntry:
    """One line of the result."""

    ref: Ref
    action: PruneAction
    reason: str

    def to_json(self) -> dict[str, str]:
        """As in the contract of `-o json`."""
        ref = self.ref
        return {
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
            "action": self.action.value,
            "reason": self.reason,
        }


OnEntry = Callable[[PruneEntry], None]


@dataclass(frozen=True, slots=True)
class PruneResult:
    """Entries at the end of a reconcile; counts where every entry was handed on and forgotten."""

    entries: tuple[PruneEntry, ...] = ()
    """Without the objects that simply stay."""
    counts: Mapping[PruneAction, int] = field(default_factory=dict)
    marked: int = 0
    """Records that were marked as orphaned."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """The next run goes on with these."""
    errors: tuple[EngineError, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """OK only if everything that should go went, or is left to the next run."""
        codes = [error.exit_code for error in self.errors]
        if self.counts.get(PruneAction.FAILED):
            codes.append(ExitCode.JOB_FAILED)
        return max(codes, default=ExitCode.OK)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each entry, note, warning and error."""
        lines = [f"{entry.ref} {entry.action}: {entry.reason}" for entry in self.entries]
        errors = (f"error: {error}" for error in self.errors)
        return (*lines, *self.note_lines, *errors)

    @property
    def note_lines(self) -> tuple[str, ...]:
        """A line for each warning and note."""
        warnings = (f"warning: {warning}" for warning in self.warnings)
        return (*warnings, *(f"note: {note}" for note in self.notes))

    def map_text(self, change: Callable[[str], str]) -> "PruneResult":
        """The same with `change` applied to its free text."""
        return replace(
            self,
            entries=tuple(replace(entry, reason=change(entry.reason)) for entry in self.entries),
            notes=tuple(map(change, self.notes)),
            warnings=tuple(map(change, self.warnings)),
            errors=tuple(error.map_text(change) for error in self.errors),
        )
