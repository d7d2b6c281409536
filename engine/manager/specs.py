"""What another reading of the specs brought, told: new problems, mended files, counts."""

from engine.errors import Problem
from engine.manager.jobs import Changes
from engine.specdir.source import Snapshot
from engine.telemetry.events import Emit, Notice, SpecMended, SpecProblem, SpecsRead


class SpecNews:
    """Tells each problem once for as long as it stays."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._problems: frozenset[Problem] = frozenset()
        self._unreadable = ""

    def tell(self, snapshot: Snapshot, changes: Changes) -> None:
        problems = frozenset(snapshot.problems)
        for problem in snapshot.problems:
            if problem not in self._problems:
                self._emit(SpecProblem(str(problem)))
        files = {problem.where.file for problem in problems}
        for file in sorted({problem.where.file for problem in self._problems} - files):
            self._emit(SpecMended(file))
        self._problems = problems
        self._tell_unreadable(snapshot.unreadable)
        self._emit(
            SpecsRead(
                snapshot.files,
                len(snapshot.jobs),
                len(changes.added),
                len(changes.changed),
                len(changes.removed),
            )
        )

    def _tell_unreadable(self, why: str) -> None:
        if why and why != self._unreadable:
            self._emit(SpecProblem(f"{why}; what was read before stays in force"))
        if self._unreadable and not why:
            self._emit(Notice("the specs can be read again"))
        self._unreadable = why
