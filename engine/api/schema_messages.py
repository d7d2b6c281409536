"""Say what a JSON Schema refuses in words for people, at the place it is about."""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, SourceLocation

_SHOWN = 60
_SOURCE_HINT = (
    "a secret is {value: ...}, {fromEnv: NAME}, {fromFile: PATH} or "
    "{fromSecret: {name: NAME, key: KEY}}, a value in quotes"
)
_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}

Path = list[str | int]


@dataclass(frozen=True, slots=True)
class Violation:
    """What one keyword of a schema refuses in one value."""

    document: Document
    path: Path
    """Of the value, from the top of its document."""
    instance: Any
    """The value."""
    keyword: str
    schema: Mapping[str, Any]
    """The part of the schema that has the keyword."""
    in_names: bool
    """Whether it is about the keys of a mapping."""

    @property
    def value(self) -> Any:
        """What the schema's keyword says."""
        return self.schema[self.keyword]

    @property
    def field(self) -> str:
        """What the user calls the value."""
        return dotted(self.path) or "the document"

    @property
    def where(self) -> SourceLocation:
        """Where the value stands."""
        return self.document.locate(self.path)

    @property
    def hint(self) -> str:
        """What the schema says to people about its pattern."""
        return str(self.schema.get("patternErrorMessage", ""))

    @property
    def may_show_a_secret(self) -> bool:
        """Whether a key or value here may be the secret itself, written where it doesn't belong."""
        inside = self.path[:2] in (["spec", "secrets"], ["defaults", "secrets"])
        return inside or "registryCredentials" in self.path

    def problem(self, words: str, hint: str | None = None) -> Diagnostic:
        """One problem with the value as a whole."""
        return Diagnostic(self.where, f"{self.field} {words}", self.hint if hint is None else hint)


def explain(found: Violation) -> Iterator[Diagnostic]:
    """Problems of one violation; what may be a secret is never repeated."""
    if found.in_names:
        yield from _bad_names(found)
    elif found.keyword == "type" and found.may_show_a_secret:
        yield _wrong_secret(found)
    else:
        yield from _EXPLAIN.get(found.keyword, _otherwise)(found)


def count(found: Violation) -> int:
    """How many problems `explain` finds in it."""
    names = _NAMES.get("propertyNames" if found.in_names else found.keyword)
    return len(names(found)) if names else 1


def _names_refused(found: Violation) -> list[str]:
    wanted = found.value
    match found.keyword:
        case "pattern":
            return [name for name in found.instance if not re.fullmatch(wanted, name)]
        case "minLength":
            return [name for name in found.instance if len(name) < wanted]
        case _:
            return [name for name in found.instance if len(name) > wanted]


def _names_unknown(found: Violation) -> list[str]:
    return [name for name in found.instance if name not in found.schema["properties"]]


def _names_missing(found: Violation) -> list[str]:
    return [name for name in found.value if name not in found.instance]


_NAMES: Mapping[str, Callable[[Violation], list[str]]] = {
    "propertyNames": _names_refused,
    "additionalProperties": _names_unknown,
    "required": _names_missing,
}


def _bad_names(found: Violation) -> Iterator[Diagnostic]:
    for name in _names_refused(found):
        shown = "this" if found.may_show_a_secret else show(name)
        where = found.document.locate([*found.path, name], key=True)
        yield Diagnostic(where, f"{found.field}: {shown} is not a valid name", found.hint)


def _wrong_secret(found: Violation) -> Diagnostic:
    """A value of the wrong type, or a secret where its name should be."""
    words = f"must be {_type_names(found)}"
    *above, name = found.path
    is_name = found.instance is not None and str(name).isidentifier()
    if above[-1:] == ["secrets"] and not is_name:
        return Diagnostic(found.where, f"{dotted(above)}: this {words}", _SOURCE_HINT)
    return found.problem(words, _SOURCE_HINT)


def _unknown_fields(found: Violation) -> Iterator[Diagnostic]:
    known = sorted(found.schema["properties"])
    for key in _names_unknown(found):
        path = [*found.path, key]
        named = f" in {found.field}" if found.may_show_a_secret else f" {show(dotted(path))}"
        where = found.document.locate(path, key=True)
        yield Diagnostic(where, f"unknown field{named}", suggest(key, known))


def _required(found: Violation) -> Iterator[Diagnostic]:
    for key in _names_missing(found):
        yield Diagnostic(found.where, f"{dotted([*found.path, key])} is missing")


def _type(found: Violation) -> Iterator[Diagnostic]:
    quotable = "string" in found.value and isinstance(found.instance, bool | int | float)
    hint = quote_hint(found.document, found.path) if quotable else ""
    yield found.problem(f"must be {_type_names(found)}, not {type_name(found.instance)}", hint)


def _type_names(found: Violation) -> str:
    wanted = [found.value] if isinstance(found.value, str) else found.value
    return " or ".join(_TYPES[name] for name in wanted)


def _choice(found: Violation) -> Iterator[Diagnostic]:
    allowed = found.value if found.keyword == "enum" else [found.value]
    hint = suggest(str(found.instance), [str(value) for value in allowed])
    yield Diagnostic(found.where, f"{found.field}: {show(found.instance)} is not allowed", hint)


def _pattern(found: Violation) -> Iterator[Diagnostic]:
    shown = "this" if found.may_show_a_secret else show(found.instance)
    yield Diagnostic(found.where, f"{found.field}: {shown} is not valid", found.hint)


def _too_long(found: Violation) -> Iterator[Diagnostic]:
    yield found.problem(f"has {len(found.instance)} characters, at most {found.value} fit")


def _too_many(found: Violation) -> Iterator[Diagnostic]:
    yield found.problem(
        f"has {len(found.instance)} entries, at most {found.value} may be set",
        found.hint or _choices(found),
    )


def _empty(found: Violation) -> Iterator[Diagnostic]:
    yield found.problem("is empty", found.hint or _choices(found))


def _bound(found: Violation) -> Iterator[Diagnostic]:
    bound = "at least" if found.keyword == "minimum" else "at most"
    yield found.problem(f"must be {bound} {found.value}, not {found.instance}")


def _unique(found: Violation) -> Iterator[Diagnostic]:
    yield found.problem("names something twice")


def _otherwise(found: Violation) -> Iterator[Diagnostic]:
    yield found.problem(f"does not fit the schema ({found.keyword})")


_EXPLAIN: Mapping[str, Callable[[Violation], Iterator[Diagnostic]]] = {
    "additionalProperties": _unknown_fields,
    "required": _required,
    "type": _type,
    "enum": _choice,
    "const": _choice,
    "pattern": _pattern,
    "maxLength": _too_long,
    "maxItems": _too_many,
    "maxProperties": _too_many,
    "minLength": _empty,
    "minItems": _empty,
    "minProperties": _empty,
    "minimum": _bound,
    "maximum": _bound,
    "uniqueItems": _unique,
}


def suggest(word: str, known: Sequence[str]) -> str:
    """A hint: the known word that was probably meant, else all of them."""
    close = difflib.get_close_matches(word[:_SHOWN], known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"one of: {', '.join(known)}" if known else ""


def quote_hint(document: Document, path: Sequence[str | int]) -> str:
    """How a value is to be written where a string is wanted, every character of it kept."""
    written = document.written_scalar(path)
    return f'quote it: "{written}"' if written else "quote it"


def type_name(value: Any) -> str:
    """What people call the type of a value of YAML."""
    match value:
        case None:
            return "empty"
        case bool():
            return "true or false"
        case int() | float():
            return f"the number {value}"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a mapping"


def show(value: Any) -> str:
    """The value as JSON, cut to a readable length."""
    return shorten(json.dumps(value, ensure_ascii=False))


def shorten(text: str, length: int = _SHOWN) -> str:
    """`text`, cut to a readable length."""
    return text if len(text) <= length else text[: length - 1] + "…"


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: `spec.services[0].image`; endless keys are cut."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + shorten(step)
    return text


def _choices(found: Violation) -> str:
    names = sorted(found.schema.get("properties", ()))
    return f"exactly one of: {', '.join(names)}" if names else ""
