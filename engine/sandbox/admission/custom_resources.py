"""Custom resources: what their CustomResourceDefinition, as it is stored, says of their objects.

Objects are pruned and judged as the API server does by a structural schema. CEL rules need the
package common-expression-language; without it a write is accepted with a warning that says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.api.schema_messages import dotted
from engine.sandbox import kinds
from engine.sandbox.errors import (
    FieldError,
    field_invalid,
    field_required,
    field_unsupported,
)

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Json, Obj

_OPEN, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_RULES = "x-kubernetes-validations"
_HEAD = ("apiVersion", "kind", "metadata")
_NO_CEL = "the sandbox checks no CEL rules without the Python package common-expression-language"
_WORDS = {
    "minimum": "be greater than or equal to {wanted}",
    "maximum": "be less than or equal to {wanted}",
}


def served(context: Context, kind: Kind) -> bool:
    """Whether the server has this kind: always, or as long as there is its definition."""
    return not kind.custom or _version(context, kind) is not None


def columns(context: Context, kind: Kind) -> list[Obj]:
    """The printer columns of a custom resource."""
    version = _version(context, kind) or {}
    listed: list[Obj] = version.get("additionalPrinterColumns", [])
    age = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    return listed or [age]


def _version(context: Context, kind: Kind) -> Obj | None:
    entry = context.storage.get(kinds.CRDS, "", f"{kind.resource}.{kind.group}")
    if entry is None:
        return None
    versions = entry.obj["spec"]["versions"]
    return next((one for one in versions if one["name"] == kind.version), None)


def _schema(context: Context, kind: Kind) -> Obj:
    version = _version(context, kind) or {}
    schema: Obj = version.get("schema", {}).get("openAPIV3Schema", {})
    return schema


def prune(context: Context, kind: Kind, body: Obj) -> tuple[Obj, list[str]]:
    """The object with what the schema knows or keeps, and the paths of the rest."""
    schema, unknown = _schema(context, kind) or {_OPEN: True}, list[str]()
    rest = {name: value for name, value in body.items() if name not in _HEAD}
    return _pruned(schema, rest, "", unknown), unknown


def _pruned(schema: Obj, value: Json, path: str, unknown: list[str]) -> Json:
    if isinstance(value, list):
        items = schema.get("items", {_OPEN: True})
        return [_pruned(items, one, f"{path}[{at}]", unknown) for at, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    out = {}
    below = schema.get("additionalProperties")
    for name, one in value.items():
        at = f"{path}.{name}" if path else name
        inner = schema.get("properties", {}).get(name, below)
        if inner is not None:
            out[name] = _pruned(inner, one, at, unknown)
        elif schema.get(_OPEN):
            out[name] = one
        else:
            unknown.append(at)
    return out


def fill(context: Context, kind: Kind, obj: Obj) -> None:
    """The defaults at the top of the schema, which are those of a status."""
    for name, schema in _schema(context, kind).get("properties", {}).items():
        if name not in obj and "default" in schema:
            obj[name] = dict(schema["default"])


def check(
    context: Context, kind: Kind, obj: Obj, old: Obj | None, warnings: list[str]
) -> list[FieldError]:
    """What the schema and its rules refuse in an object, or in its new version."""
    schema = _schema(context, kind)
    found = list(_violations(schema, obj))
    if found:
        return found
    try:
        return list(_broken_rules(schema, obj, old, ""))
    except ImportError:
        warnings.append(_NO_CEL)
        return []


def _violations(schema: Obj, obj: Obj) -> Iterator[FieldError]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - it takes a tenth of a second

    for error in Draft202012Validator(schema).iter_errors(obj):
        path, value, wanted = dotted([*error.absolute_path]), error.instance, error.validator_value
        if error.validator == "enum":
            yield field_unsupported(path, value, wanted)
        elif error.validator == "required":
            missing = next(name for name in wanted if error.message.startswith(repr(name)))
            yield field_required(f"{path}.{missing}".lstrip("."))
        elif error.validator == "type":
            name = _type_name(value)
            yield field_invalid(path, name, f'{path} in body must be of type {wanted}: "{name}"')
        else:
            words = _WORDS.get(str(error.validator), "does not fit {keyword}: {wanted}")
            words = words.format(keyword=error.validator, wanted=wanted)
            yield field_invalid(path, value, f"{path} in body should {words}")


def _broken_rules(schema: Obj, value: Json, old: Json, path: str) -> Iterator[FieldError]:
    for rule in schema.get(_RULES, ()):
        if "oldSelf" in rule["rule"] and old is None:
            continue
        if not _program(rule["rule"]).execute({"self": value, "oldSelf": old}):
            shown = "" if isinstance(value, dict | list) else f"{json.dumps(value)}: "
            text = f"Invalid value: {shown}{rule['message']}"
            yield FieldError(path, "FieldValueInvalid", text)
    if isinstance(value, dict):
        known, below = schema.get("properties", {}), schema.get("additionalProperties")
        for name, one in value.items():
            inner = known.get(name, below)
            before = old.get(name) if isinstance(old, dict) else None
            at = f"{path}[{name}]" if name not in known else f"{path}.{name}".lstrip(".")
            if inner is not None:
                yield from _broken_rules(inner, one, before, at)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _broken_rules(schema.get("items", {}), one, None, f"{path}[{index}]")


@cache
def _program(rule: str) -> Any:
    import cel  # noqa: PLC0415 - a package that the sandbox can do without

    return cel.compile(rule)


def _type_name(value: Json) -> str:
    names = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
    return names.get(type(value), "string")
