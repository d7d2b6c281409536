"""What `engine prune` prints: each object as soon as it is settled; none is kept."""

from collections.abc import Iterable
from typing import TextIO

from engine.cli.output import sanitize_line, to_json
from engine.errors import EngineError
from engine.prune.result import PruneAction, PruneEntry, PruneResult

_WIDTH = max(len(action) for action in PruneAction)


class PrunePrinter:
    """A line per object on stdout, or with `-o json` one document, written piece by piece.

    Only with `verbose` has what simply stays a line.
    """

    def __init__(self, out: TextIO, output: str, *, verbose: bool = True) -> None:
        self._out = out
        self._silent = () if verbose else (PruneAction.KEPT, PruneAction.PROTECTED)
        self._is_json = output == "json"
        self._separator = "\n  "
        if self._is_json:
            self._out.write('{"pruned": [')

    def entry(self, entry: PruneEntry) -> None:
        """Print what became of one object."""
        if self._is_json:
            self._out.write(self._separator + to_json(entry.to_json()))
            self._separator = ",\n  "
        elif entry.action not in self._silent:
            line = sanitize_line(f"{entry.action:<{_WIDTH}}  {entry.ref}  {entry.reason}")
            self._out.write(f"{line}\n")

    def end(self, errors: Iterable[EngineError]) -> None:
        """Finish the output; nothing is printed afterwards."""
        if self._is_json:
            closing = "\n" if self._separator.startswith(",") else ""
            texts = to_json([str(error) for error in errors])
            self._out.write(f'{closing}],\n "errors": {texts}}}\n')
        self._out.flush()


def summary(result: PruneResult) -> str:
    """How many objects had which end."""
    counts = {PruneAction.DELETED: 0, **result.counts}
    return ", ".join(f"{counts[action]} {action}" for action in PruneAction if action in counts)
