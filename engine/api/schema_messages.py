"""Say what a JSON Schema refuses in words for people, at the place it is about."""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

_SHOWN = 60
_FEW, _NEAREST = 12, 3
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

_WORDS = {
    "pattern": ": {shown} is not valid",
    "minLength": " is empty",
    "maxLength": " has {size} characters, at most {wanted} fit",
    "minItems": " is empty",
    "maxItems": " has {size} entries, at most {wanted} may be set",
    "minProperties": " is empty",
    "maxProperties": " has {size} entries, at most {wanted} may be set",
    "minimum": " must be at least {wanted}, not {value}",
    "maximum": " must be at most {wanted}, not {value}",
    "uniqueItems": " names something twice",
}

Path = Sequence[str | int]
Problem = tuple[Path, bool, str, str]
"""(path of a value, whether it is about its key, message, hint)."""


def explain(
    error: "ValidationError", manifest: str = "", written: Callable[[Path], str] = lambda _path: ""
) -> Iterator[Problem]:
    """Problems of one violation; what may be a secret is never repeated.

    `manifest` is the kind of a document that is an object of Kubernetes; `written` says how the
    plain scalar at a path is written, "" if that is unknown.
    """
    schema: Any = error.schema
    wanted: Any = error.validator_value
    value: Any = error.instance
    path = [*error.absolute_path]
    secret = _may_show_a_secret(path)
    shown = "this" if secret else show(value)
    hint = str(schema.get("patternErrorMessage", ""))
    field = dotted(path) or "the document"
    if "propertyNames" in error.absolute_schema_path:
        yield [*path, value], True, f"{field}: {shown} is not a valid name", hint
    elif error.validator == "additionalProperties":
        known = sorted(schema.get("properties", ()))
        others = schema.get("x-other-names", {})
        for name in unknown_names(error):
            below = [*path, name]
            named = f"in {field}" if secret else json.dumps(dotted(below), ensure_ascii=False)
            hint = others.get(name) or _known(name, known, path, manifest)
            yield below, True, f"unknown field {named}", hint
    elif error.validator == "required":
        # The name is nowhere but in the message.
        missing = next(name for name in wanted if error.message.startswith(repr(name)))
        yield path, False, f"{dotted([*path, missing])} is missing", ""
    elif error.validator == "type":
        words = f" must be {_type_names(wanted)}"
        if secret:
            hint = _SOURCE_HINT
            if path[-2:-1] == ["secrets"] and (value is None or not str(path[-1]).isidentifier()):
                field = f"{dotted(path[:-1])}: this"
        elif manifest != "Secret":
            words += f", not {type_name(value)}"
            if "string" in wanted and isinstance(value, bool | int | float):
                text = written(path)
                hint = f'quote it: "{text}"' if text else "quote it"
            else:
                hint = _fix(value, schema)
        yield path, False, field + words, hint
    elif error.validator in ("enum", "const"):
        allowed = wanted if error.validator == "enum" else [wanted]
        meant = suggest(str(value), [str(one) for one in allowed if one is not None])
        yield path, False, f"{field}: {show(value)} is not allowed", meant
    else:
        words = _WORDS.get(str(error.validator), " does not fit the schema ({keyword})").format(
            keyword=error.validator,
            wanted=wanted,
            value=value,
            shown=shown,
            size=len(value) if isinstance(value, str | list | dict) else 0,
        )
        names = sorted({*schema.get("properties", ())} - {*schema.get("required", ())})
        choices = f"exactly one of: {', '.join(names)}" if names else ""
        yield path, False, field + words, hint or choices


def unknown_names(error: "ValidationError") -> list[str]:
    """The fields that a mapping may not have: one violation is about all of them."""
    schema: Any = error.schema
    patterns = "|".join(schema.get("patternProperties", ())) or r"\Z."
    known = schema.get("properties", ())
    names: Any = error.instance
    return [name for name in names if name not in known and not re.search(patterns, name)]


def _may_show_a_secret(path: Path) -> bool:
    """Whether a key or value here may be the secret itself, written where it doesn't belong."""
    inside = path[:2] in (["spec", "secrets"], ["defaults", "secrets"])
    return inside or "registryCredentials" in path


def _type_names(wanted: str | list[str]) -> str:
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(_TYPES[name] for name in names if name != "null")


def _known(word: str, known: Sequence[str], path: Path, manifest: str) -> str:
    """As `suggest`, but of a long list the nearest, and what prints all of it."""
    hint = suggest(word, known)
    if len(known) <= _FEW or hint.startswith("did you mean"):
        return hint
    nearest = difflib.get_close_matches(word[:_SHOWN], known, n=_NEAREST, cutoff=0.0)
    steps = [step for step in path if isinstance(step, str)]
    named = ".".join(("spec", "podPatch", *steps) if manifest else steps)
    return f"nearest: {', '.join(nearest)}; engine explain {named} lists all"


def _fix(value: Any, schema: Any) -> str:
    """How a value of another type may be written: a block of text, or the schema's own example."""
    if isinstance(value, list) and schema.get("type") == "string":
        return "| begins a text of several lines"
    example = next(iter(schema.get("examples", ())), None)
    return f"such as {show(example)}" if isinstance(example, list | dict) else ""


def suggest(word: str, known: Sequence[str]) -> str:
    """A hint: the known word that was probably meant, else all of them."""
    close = difflib.get_close_matches(word[:_SHOWN], known, n=1, cutoff=0.6)
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
