"""The result of pruning: one entry per object, and counts of a whole run."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import asdict

from engine.errors import EngineError, ExitCode
from engine.refs import Ref
from engine.values import Text


class DryRun(StrEnum):
    """How far a run goes without deleting anything: `server` asks the server, too."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


class PruneAction(StrEnum):
    """What becomes of an object."""

    DELETED = "deleted"
    WOULD_DELETE = "would-delete"
    KEPT = "kept"
    PROTECTED = "protected"
    INVALID = "invalid"
    FAILED = "failed"


class PruneEntry(Struct, frozen=True):
    """One line of the result."""

    ref: Ref
    action: PruneAction
    reason: Text

    def to_json(self) -> dict[str, str]:
        """As in the contract of `-o json`."""
        return {**asdict(self.ref), "action": self.action.value, "reason": self.reason}


OnEntry = Callable[[PruneEntry], None]


class PruneResult(Struct, frozen=True):
    """Entries at the end of a reconcile; counts where every entry was handed on and forgotten."""

    entries: tuple[PruneEntry, ...] = ()
    """Without the objects that simply stay."""
    counts: Mapping[PruneAction, int] = {}
    marked: int = 0
    """Records that were marked as orphaned."""
    notes: tuple[Text, ...] = ()
    warnings: tuple[Text, ...] = ()
    """The next run goes on with these."""
    errors: tuple[EngineError, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """OK only if everything that should go went, or is left to the next run."""
        failed = self.counts.get(PruneAction.FAILED)
        codes = [ExitCode.JOB_FAILED if failed else ExitCode.OK]
        codes += map(attrgetter("exit_code"), self.errors)
        return max(codes)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each entry, warning, note and error."""
        return (
            *map("{0.ref} {0.action}: {0.reason}".format, self.entries),
            *map("warning: {}".format, self.warnings),
            *map("note: {}".format, self.notes),
            *map("error: {}".format, self.errors),
        )
