"""What `engine prune` prints: each object as soon as it is settled, so that none has to be kept."""

from collections.abc import Iterable
from datetime import datetime
from typing import TextIO

from engine.cli.printers.progress import ProgressLine
from engine.cli.printers.text import one_line, to_json
from engine.durations import format_duration
from engine.errors import EngineError
from engine.prune.result import PruneAction, PruneEntry, PruneResult

_WIDTH = max(len(action) for action in PruneAction)


class TextPrunePrinter:
    """One line per object on stdout; errors and the summary go to stderr."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def entry(self, entry: PruneEntry) -> None:
        """Print what became of one object."""
        self._out.write(one_line(f"{entry.action:<{_WIDTH}}  {entry.ref}  {entry.reason}") + "\n")

    def end(self, errors: Iterable[EngineError]) -> None:
        """Finish the output; nothing is printed afterwards."""
        del errors
        self._out.flush()


class JsonPrunePrinter:
    """One document, written piece by piece."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._out.write('{"pruned": [')
        self._between = "\n  "

    def entry(self, entry: PruneEntry) -> None:
        """Print what became of one object."""
        text = to_json(entry_json(entry))
        self._out.write(f"{self._between}{text}")
        self._between = ",\n  "

    def end(self, errors: Iterable[EngineError]) -> None:
        """Finish the output; nothing is printed afterwards."""
        told = to_json([str(error) for error in errors])
        closing = "\n" if self._between.startswith(",") else ""
        self._out.write(f'{closing}],\n "errors": {told}}}\n')
        self._out.flush()


class PruneProgress:
    """How many objects have been looked at and deleted, on stderr.

    Unless it may be shown `beside_lines`, it goes for good when the first of them is printed: then
    they are on the same terminal, and are progress enough.
    """

    def __init__(self, *, beside_lines: bool) -> None:
        self.line = ProgressLine()
        self._beside_lines = beside_lines
        self._seen = self._deleted = 0

    def on_page(self, count: int) -> None:
        """So many objects more have been looked at."""
        self._seen += count
        self._show()

    def on_entry(self, entry: PruneEntry) -> None:
        """One of them is settled, and is about to be printed."""
        if not self._beside_lines:
            self.line.close()
        self._deleted += entry.action is PruneAction.DELETED
        self._show()

    def _show(self) -> None:
        self.line.show(f"pruning: {self._seen:,} objects looked at, {self._deleted:,} deleted")


def open_printer(out: TextIO, output: str) -> TextPrunePrinter | JsonPrunePrinter:
    """The printer of an `-o`."""
    return JsonPrunePrinter(out) if output == "json" else TextPrunePrinter(out)


def entry_json(entry: PruneEntry) -> dict[str, str]:
    """As in the contract of `-o json`."""
    return {
        "kind": entry.ref.kind,
        "namespace": entry.ref.namespace,
        "name": entry.ref.name,
        "action": entry.action.value,
        "reason": entry.reason,
    }


def notes(result: PruneResult) -> list[str]:
    """What was left alone although it should go or may be meant, a line each."""
    lines = [f"warning: {warning}" for warning in result.warnings]
    if result.unnamed:
        names = sorted(result.unnamed_ttls)
        carry = "object carries" if result.unnamed == 1 else "objects carry"
        are = "isn't" if len(names) == 1 else "aren't"
        among = f"{' or '.join(names)}, which {are} among --annotation"
        lines.append(f"note: {result.unnamed} {carry} {among}: left alone")
    if result.system:
        count = sum(result.system.values())
        objects = "object carries" if count == 1 else "objects carry"
        places = ", ".join(sorted(result.system))
        lines.append(f"note: {count} {objects} a TTL in {places}: left alone unless -n names it")
    return lines


def summary(result: PruneResult, now: datetime) -> str:
    """What went, what stays, and why."""
    gone = (PruneAction.DELETED, PruneAction.WOULD_DELETE, PruneAction.FAILED)
    parts = [f"{result.actions.get(PruneAction.DELETED, 0)} {PruneAction.DELETED}"]
    parts += [f"{result.actions[a]} {a}" for a in gone[1:] if result.actions.get(a)]
    stays = [f"{count} {why}" for why, count in sorted(result.kept.items())]
    stays += [
        f"{result.actions[a]} {a}"
        for a in (PruneAction.PROTECTED, PruneAction.INVALID)
        if result.actions.get(a)
    ]
    if result.without_ttl:
        stays.append(f"{result.without_ttl} without a TTL")
    text = ", ".join(parts)
    if stays:
        text += f"; stays: {', '.join(stays)}"
    if result.next_expiry is not None:
        left = max(1, (result.next_expiry - now).total_seconds())
        text += f"; the next expires in {format_duration(left)}"
    return text
