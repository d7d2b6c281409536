"""How many jobs may be removed at once: the wrong folder would remove every job of a source."""

from collections.abc import Collection

from msgspec import Struct

from engine.errors import UsageError
from engine.lifecycle.max_starts import name_jobs
from engine.refs import JobKey

_FEW = 10


class MaxRemovals(Struct, frozen=True):
    """How many jobs of a source may be removed in one pass."""

    limit: float | None = None
    """None for half of the source's jobs, and for ten in any case."""

    def refusal(self, source: str, gone: Collection[JobKey], jobs: int) -> UsageError | None:
        """Why none of the `gone` is removed; None if they may be. The source has so many `jobs`."""
        count = len(gone)
        if count <= (max(_FEW, jobs // 2) if self.limit is None else self.limit):
            return None
        why = "more than half" if self.limit is None else f"--max-removals allows {self.limit:,}"
        return UsageError(
            f"--prune would remove {count:,} of the {jobs:,} jobs of source {source}, {why}:"
            f" none is removed; {name_jobs(sorted(gone))}",
            hint="are the folder and --source the right ones? If it is meant: "
            f"--max-removals {count}",
        )
