"""Values of which a part isn't shown, isn't compared, or is free text."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import asdict, fields, replace

Value = TypeVar("Value")
Text = Annotated[str, "free text"]
"""Words of a container, a registry, a server or an exception.

They may hold secrets: printers mask them.
"""


class Hidden(Struct, frozen=True):
    """Shows nothing of itself where it is printed: it holds a secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class Comparable(Struct, frozen=True):
    """Equals another one that differs in nothing but the fields named in `NOT_COMPARED`."""

    NOT_COMPARED: ClassVar[frozenset[str]]

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other):
            return self is other
        return _compared(self) == _compared(other)

    def __hash__(self) -> int:
        return hash(tuple(_compared(self).values()))


def _compared(value: Any) -> dict[str, Any]:
    return {name: of for name, of in asdict(value).items() if name not in value.NOT_COMPARED}


def map_text(value: Value, change: Callable[[str], str], *, is_free: bool = False) -> Value:
    """`value` with `change` applied to all free text in it, and to nothing else."""
    found: Any = value
    if isinstance(found, str):
        found = change(found) if is_free and found else found
    elif isinstance(found, tuple):
        found = tuple(map_text(one, change, is_free=is_free) for one in found)
    elif isinstance(found, Struct):
        kinds = _fields(type(found)).items()
        parts = {n: map_text(getattr(found, n), change, is_free=free) for n, free in kinds}
        found = replace(found, **parts)
    elif hasattr(found, "map_text"):
        found = found.map_text(change)
    return found  # type: ignore[no-any-return]


@cache
def _fields(kind: type[Struct]) -> dict[str, bool]:
    """Each field, and whether it is free text."""
    return {one.name: Text in (one.type, *get_args(one.type)) for one in fields(kind)}
