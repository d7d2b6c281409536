"""The types of Kubernetes' fields, as objects that checking, decoding and patching walk along."""

from dataclasses import dataclass, field

SCALARS = frozenset(
    {"str", "int32", "int64", "float", "bool", "qty", "intstr", "time", "bytes", "any"}
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf; `choices` are the only values that it may have, if there are any.

    `keeps_zero`: an empty string, 0 or false is kept when an object is written, as Go does for
    pointers and for required fields; elsewhere it is left out.
    """

    name: str
    keeps_zero: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from string to `value`; atomic: apply owns it as a whole."""

    value: "Type"
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. Apply knows its items by `keys`, as a set, or else owns it as a whole.

    A strategic merge patch merges it by `merge_key`, `merges` plain values into it, or replaces it.
    """

    item: "Type"
    keys: tuple[str, ...] = ()
    is_set: bool = False
    merge_key: str = ""
    merges: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A mapping with named fields; atomic: apply owns it as a whole.

    `package` is where the API defines it: the same name may mean another type elsewhere.
    """

    name: str
    package: str
    atomic: bool = False
    fields: "dict[str, Type]" = field(default_factory=dict, compare=False, repr=False)

    @property
    def full_name(self) -> str:
        """The package and the name, as OpenAPI has them."""
        return f"{self.package}.{self.name}"


Type = Scalar | MapOf | ListOf | Struct
ANY = Scalar("any")


def type_below(kind: Type, key: str) -> Type:
    """The type of the value at `key` of a mapping; anything where nobody says."""
    if isinstance(kind, Struct):
        return kind.fields.get(key, ANY)
    return kind.value if isinstance(kind, MapOf) else ANY


class Schema:
    """Every type of one release."""

    def __init__(self, structs: dict[str, Struct], kinds: dict[tuple[str, str], Struct]) -> None:
        self._structs = structs
        self._kinds = kinds

    def kind(self, api_version: str, kind: str) -> Struct:
        """The type of a kind's objects. Errors: KeyError."""
        return self._kinds[api_version, kind]

    def structs(self) -> tuple[Struct, ...]:
        """Every struct of the table."""
        return tuple(self._structs.values())
