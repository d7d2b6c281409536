"""Values of which a part isn't shown, or isn't compared."""

from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict


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
