"""Whether data fits a JSON Schema, yes or no: fast for the many specs that are fine.

A schema becomes nested functions once. Yes is certain; no only means that a validator that can
tell why has to look (`engine.spec.schema_errors`), which also has the last word.
"""

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Fits = Callable[[Any], bool]
Resolve = Callable[[str], tuple[Mapping[str, Any], "Resolve"]]
"""From a $ref to the schema that it names, and to how the $refs in that one are resolved."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_WORDS = frozenset({"$schema", "title", "description", "definitions", "patternErrorMessage"})
_KEYWORDS = _WORDS | {
    "$ref", "type", "const", "enum", "if", "then",
    "pattern", "minLength", "maxLength", "minimum", "maximum",
    "items", "minItems", "maxItems", "uniqueItems",
    "properties", "additionalProperties", "propertyNames", "required",
    "minProperties", "maxProperties",
}  # fmt: skip


def compile_schema(schema: Any, resolve: Resolve) -> Fits:
    """Errors: ValueError for a keyword that isn't known here, rather than passing over it."""
    if isinstance(schema, bool):
        return lambda _: schema
    if unknown := schema.keys() - _KEYWORDS:
        raise ValueError(f"unknown keywords: {', '.join(sorted(unknown))}")
    wanted = schema.get("type", [*_KINDS])
    kinds = frozenset(
        kind for name in ([wanted] if isinstance(wanted, str) else wanted) for kind in _KINDS[name]
    )
    always = tuple(_always(schema, resolve))
    by_kind = dict.fromkeys(kinds, always)
    for kind, more in (
        (str, _text(schema)),
        (int, _number(schema)),
        (float, _number(schema)),
        (list, _array(schema, resolve)),
        (dict, _object(schema, resolve)),
    ):
        if kind in by_kind:
            by_kind[kind] = (*always, *more)

    def fits(value: Any) -> bool:
        checks = by_kind.get(type(value))
        if checks is None:
            return False
        for check in checks:  # noqa: SIM110 - a generator costs as much as most of the checks
            if not check(value):
                return False
        return True

    return fits


def _always(schema: Mapping[str, Any], resolve: Resolve) -> Iterator[Fits]:
    if "$ref" in schema:
        yield compile_schema(*resolve(schema["$ref"]))
    if "const" in schema:
        yield _one_of([schema["const"]])
    if "enum" in schema:
        yield _one_of(schema["enum"])
    if "if" in schema:
        condition = compile_schema(schema["if"], resolve)
        then = compile_schema(schema.get("then", True), resolve)
        yield lambda value: not condition(value) or then(value)


def _one_of(values: Sequence[Any]) -> Fits:
    """Only for texts is yes certain: to JSON Schema 1 and 1.0 are equal, 1 and true are not."""
    texts = frozenset(value for value in values if isinstance(value, str))
    return lambda value: isinstance(value, str) and value in texts


def _text(schema: Mapping[str, Any]) -> Iterator[Fits]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", sys.maxsize)
    if least or most < sys.maxsize:
        yield lambda value: least <= len(value) <= most
    if "pattern" in schema:
        matches = re.compile(schema["pattern"]).fullmatch
        yield lambda value: matches(value) is not None


def _number(schema: Mapping[str, Any]) -> Iterator[Fits]:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if least > -math.inf or most < math.inf:
        yield lambda value: least <= value <= most


def _array(schema: Mapping[str, Any], resolve: Resolve) -> Iterator[Fits]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", sys.maxsize)
    if least or most < sys.maxsize:
        yield lambda value: least <= len(value) <= most
    if "items" in schema:
        item = compile_schema(schema["items"], resolve)
        yield lambda value: all(map(item, value))
    if schema.get("uniqueItems"):
        yield lambda value: all(isinstance(v, str) for v in value) and len({*value}) == len(value)


def _object(schema: Mapping[str, Any], resolve: Resolve) -> Iterator[Fits]:
    least, most = schema.get("minProperties", 0), schema.get("maxProperties", sys.maxsize)
    if least or most < sys.maxsize:
        yield lambda value: least <= len(value) <= most
    if "required" in schema:
        required = frozenset(schema["required"])
        yield lambda value: required <= value.keys()
    if "propertyNames" in schema:
        name = compile_schema(schema["propertyNames"], resolve)
        yield lambda value: all(map(name, value))
    fields = {
        key: compile_schema(field, resolve) for key, field in schema.get("properties", {}).items()
    }
    others = compile_schema(schema.get("additionalProperties", True), resolve)
    if fields or "additionalProperties" in schema:
        yield lambda value: all(fields.get(key, others)(item) for key, item in value.items())
