"""Say what a JSON Schema refuses in words for people, at the place it is about."""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, SourceLocation

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_SHOWN = 60
_SOURCE_HINT = "a secret is {value: ...}, {fromEnv: NAME} or {fromFile: PATH}, a value in quotes"
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
class _Finding:
    """One violation: `value` is what the schema's keyword says, `instance` what was written."""

    document: Document
    path: Path
    keyword: str
    value: Any
    instance: Any
    schema: Mapping[str, Any]

    @property
    def field(self) -> str:
        return dotted(self.path) or "the document"

    @property
    def where(self) -> SourceLocation:
        return self.document.locate(self.path)

    @property
    def hint(self) -> str:
        return str(self.schema.get("patternErrorMessage", ""))

    def problem(self, words: str, hint: str | None = None) -> Diagnostic:
        return Diagnostic(self.where, f"{self.field} {words}", self.hint if hint is None else hint)


def explain(error: "ValidationError", document: Document) -> Iterator[Diagnostic]:
    """Problems of one violation; a value that may be a secret is never repeated."""
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    found = _Finding(
        document,
        [*error.absolute_path],
        str(error.validator),
        error.validator_value,
        error.instance,
        schema,
    )
    if _may_be_a_secret(found):
        yield found.problem(f"must be {_type_names(found)}", _SOURCE_HINT)
    elif "propertyNames" in error.absolute_schema_path:
        where = document.locate([*found.path, str(found.instance)], key=True)
        yield Diagnostic(
            where, f"{found.field}: {show(found.instance)} is not a valid name", found.hint
        )
    else:
        yield from _EXPLAIN.get(found.keyword, _otherwise)(found)


def _may_be_a_secret(found: _Finding) -> bool:
    """A value of the wrong type, where somebody may have put the secret itself."""
    path = found.path
    inside = path[:2] == ["spec", "secrets"] or path[:2] == ["defaults", "secrets"]
    return found.keyword == "type" and (inside or "registryCredentials" in path)


def _unknown_fields(found: _Finding) -> Iterator[Diagnostic]:
    known = sorted(found.schema.get("properties", ()))
    for key in sorted(set(found.instance) - set(known)):
        path = [*found.path, key]
        where = found.document.locate(path, key=True)
        yield Diagnostic(where, f"unknown field {show(dotted(path))}", suggest(key, known))


def _required(found: _Finding) -> Iterator[Diagnostic]:
    for key in found.value:
        if key not in found.instance:
            yield Diagnostic(found.where, f"{dotted([*found.path, key])} is missing")


def _type(found: _Finding) -> Iterator[Diagnostic]:
    quotable = "string" in found.value and isinstance(found.instance, bool | int | float)
    hint = f'quote it: "{json.dumps(found.instance)}"' if quotable else ""
    yield found.problem(f"must be {_type_names(found)}, not {type_name(found.instance)}", hint)


def _type_names(found: _Finding) -> str:
    wanted = [found.value] if isinstance(found.value, str) else found.value
    return " or ".join(_TYPES[name] for name in wanted)


def _choice(found: _Finding) -> Iterator[Diagnostic]:
    allowed = found.value if found.keyword == "enum" else [found.value]
    hint = suggest(str(found.instance), [str(value) for value in allowed])
    yield Diagnostic(found.where, f"{found.field}: {show(found.instance)} is not allowed", hint)


def _pattern(found: _Finding) -> Iterator[Diagnostic]:
    yield Diagnostic(found.where, f"{found.field}: {show(found.instance)} is not valid", found.hint)


def _too_long(found: _Finding) -> Iterator[Diagnostic]:
    yield found.problem(f"has {len(found.instance)} characters, at most {found.value} fit")


def _too_many(found: _Finding) -> Iterator[Diagnostic]:
    yield found.problem(
        f"has {len(found.instance)} entries, at most {found.value} may be set", _choices(found)
    )


def _empty(found: _Finding) -> Iterator[Diagnostic]:
    yield found.problem("is empty", found.hint or _choices(found))


def _bound(found: _Finding) -> Iterator[Diagnostic]:
    bound = "at least" if found.keyword == "minimum" else "at most"
    yield found.problem(f"must be {bound} {found.value}, not {found.instance}")


def _unique(found: _Finding) -> Iterator[Diagnostic]:
    yield found.problem("names something twice")


def _otherwise(found: _Finding) -> Iterator[Diagnostic]:
    yield found.problem(f"does not fit the schema ({found.keyword})")


_EXPLAIN: Mapping[str, Callable[[_Finding], Iterator[Diagnostic]]] = {
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
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"one of: {', '.join(known)}" if known else ""


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
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: `spec.services[0].image`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _choices(found: _Finding) -> str:
    names = sorted(found.schema.get("properties", ()))
    return f"exactly one of: {', '.join(names)}" if names else ""
