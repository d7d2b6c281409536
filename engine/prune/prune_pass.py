"""What became of objects at the end of a reconcile."""

from dataclasses import dataclass

from engine.errors import EngineError, ExitCode
from engine.prune.result import PruneEntry


@dataclass(frozen=True, slots=True)
class PrunePass:
    """What became of objects, without those that simply stay; and what counts as an error.

    A failed removal is one, since somebody asked for it. What the TTL rule couldn't delete is only
    told: it has nothing to do with these jobs, and the next pass tries again.
    """

    entries: tuple[PruneEntry, ...] = ()
    errors: tuple[EngineError, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        return max((error.exit_code for error in self.errors), default=ExitCode.OK)

    @property
    def told(self) -> tuple[str, ...]:
        """A line for each object that is gone or should be, and for each error."""
        lines = [f"{entry.ref} {entry.action}: {entry.reason}" for entry in self.entries]
        return (*lines, *(f"error: {error}" for error in self.errors))
