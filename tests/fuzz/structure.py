"""Changes of documents by their structure: a value replaced or taken out, wherever it stands."""

from collections.abc import Iterator
from typing import Any

Path = tuple[Any, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where there is anything in `value`; () is the whole."""
    yield path
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(item, (*path, step))


def at(value: Any, path: Path) -> Any:
    """What is there."""
    for step in path:
        value = value[step]
    return value


def edited(value: Any, path: Path, new: Any) -> Any:
    """`value` with `new` at `path`; a `new` of None takes the field out."""
    if not path:
        return new
    if isinstance(value, list):
        items = [
            edited(item, path[1:], new) if index == path[0] else item
            for index, item in enumerate(value)
        ]
        return [item for item in items if item is not None]
    changed = {**value, path[0]: edited(value[path[0]], path[1:], new)}
    return {key: item for key, item in changed.items() if item is not None}
