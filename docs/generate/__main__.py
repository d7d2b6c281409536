"""`python -m docs.generate` writes docs/reference anew: `make reference`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate import commands, fields, metrics, results
from engine.api.schema_docs import KINDS

FOLDER = Path(__file__).parents[1] / "reference"
_NOTE = "<!-- Made by `make reference`: change what it is made from. -->\n\n"


def pages() -> Mapping[Path, str]:
    """Text of every page."""
    makers: dict[str, Callable[[], str]] = {
        "commands": commands.page,
        "metrics": metrics.page,
        "results": results.page,
    }
    made = {name: make() for name, make in makers.items()}
    made |= {kind.lower(): fields.page(kind) for kind in KINDS}
    return {FOLDER / f"{name}.md": _NOTE + text for name, text in sorted(made.items())}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
