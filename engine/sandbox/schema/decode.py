"""Reads a request's body by the schema, as Go would: wrong types refused, zero values dropped.

Unknown fields are left out and reported. The caller refuses them (Strict), warns (Warn) or says
nothing, as an old server does.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from engine.sandbox import quantity
from engine.sandbox.admission.custom_resources import prune
from engine.sandbox.errors import bad_request
from engine.sandbox.kinds import CRDS
from engine.sandbox.schema.types import ListOf, MapOf, Scalar, Struct, Type, struct_of

if TYPE_CHECKING:
    from engine.sandbox.context import Context, Options
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Json, Obj

_GO_NAMES = {
    "str": "string",
    "bytes": "string",
    "time": "string",
    "float": "float64",
}


_INDEX = re.compile(r"\[\d+\]")


class DecodeError(ValueError):
    """The body doesn't fit the kind's types."""


def decode(struct: Struct, value: Json) -> tuple[Obj, list[str]]:
    """The object with only what the schema knows, and the paths of what it doesn't."""
    unknown: list[str] = []
    if not isinstance(value, dict):
        raise DecodeError(
            f"json: cannot unmarshal {_json_name(value)} into Go value of type v1.{struct.name}"
        )
    return _struct(struct, value, "", unknown), unknown


def _struct(struct: Struct, value: Obj, path: str, unknown: list[str]) -> Obj:
    out: Obj = {}
    fields = struct.fields
    for name, item in value.items():
        kind = fields.get(name)
        if kind is None:
            unknown.append(f"{path}.{name}" if path else name)
        elif item is not None:
            if type(kind) is Scalar and kind.name == "str" and type(item) is str:
                if item or kind.keeps_zero:
                    out[name] = item
                continue
            read = _value(kind, item, f"{path}.{name}" if path else name, unknown, struct.name)
            if _kept(kind, read):
                out[name] = read
    return out


def _kept(kind: Type, value: Json) -> bool:
    """False for what Go leaves out when it writes: empty strings, maps and lists, false and 0."""
    if isinstance(kind, Struct):
        return True
    if isinstance(kind, Scalar):
        if kind.name == "any":
            return value is not None
        return kind.keeps_zero or bool(value) or kind.name in ("qty", "intstr")
    return bool(value)


def _value(kind: Type, value: Json, path: str, unknown: list[str], owner: str) -> Json:
    if isinstance(kind, Struct):
        if not isinstance(value, dict):
            raise _mismatch(value, path, owner, f"v1.{kind.name}")
        return _struct(kind, value, path, unknown)
    if isinstance(kind, ListOf):
        if not isinstance(value, list):
            raise _mismatch(value, path, owner, f"[]{_type_name(kind.item)}")
        return [
            _value(kind.item, item, f"{path}[{index}]", unknown, owner)
            for index, item in enumerate(value)
        ]
    if isinstance(kind, MapOf):
        if not isinstance(value, dict):
            raise _mismatch(value, path, owner, f"map[string]{_type_name(kind.value)}")
        inner = kind.value
        return {
            key: "" if item is None else _value(inner, item, path, unknown, owner)
            for key, item in value.items()
        }
    return _scalar(kind.name, value, path, owner)


def _scalar(name: str, value: Json, path: str, owner: str) -> Json:
    match name:
        case "str" | "time":
            fits = isinstance(value, str)
        case "int32" | "int64":
            fits = isinstance(value, int) and not isinstance(value, bool)
            fits = fits and -(2 ** (int(name[3:]) - 1)) <= value < 2 ** (int(name[3:]) - 1)
        case "float":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        case "bool":
            fits = isinstance(value, bool)
        case "intstr":
            fits = isinstance(value, (str, int)) and not isinstance(value, bool)
        case "qty":
            return _quantity(value, path, owner)
        case "bytes":
            return _base64(value, path, owner)
        case _:
            return value
    if not fits:
        raise _mismatch(value, path, owner, _GO_NAMES.get(name, name))
    return value


def _quantity(value: Json, path: str, owner: str) -> str:
    if isinstance(value, (dict, list, bool)):
        raise _mismatch(value, path, owner, "resource.Quantity")
    try:
        return quantity.canonical(value)
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _base64(value: Json, path: str, owner: str) -> str:
    if not isinstance(value, str):
        raise _mismatch(value, path, owner, "[]uint8")
    text = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        at = next((i for i, char in enumerate(text) if char not in alphabet), len(text) // 4 * 4)
        raise DecodeError(f"illegal base64 data at input byte {at}") from None
    return text


def _type_name(kind: Type) -> str:
    if isinstance(kind, Struct):
        return f"v1.{kind.name}"
    return _GO_NAMES.get(kind.name, kind.name) if isinstance(kind, Scalar) else "interface {}"


def _json_name(value: Json) -> str:
    for kind, name in ((bool, "bool"), (str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "number" if isinstance(value, (int, float)) else "null"


def _mismatch(value: Json, path: str, owner: str, wanted: str) -> DecodeError:
    return DecodeError(
        f"json: cannot unmarshal {_json_name(value)} into Go struct field "
        f"{owner}.{_INDEX.sub('', path)} of type {wanted}"
    )


def _decoded(context: Context, kind: Kind, body: Obj) -> tuple[Obj, list[str]]:
    """Errors: DecodeError."""
    if kind is not CRDS and not kind.custom:
        return decode(context.struct(kind), body)
    metadata, unknown = decode(struct_of("v1", "ConfigMap"), {"metadata": body.get("metadata", {})})
    rest, more = prune(context, kind, body)
    return {**metadata, **rest}, [*unknown, *more]


def read_body(context: Context, kind: Kind, body: Json, options: Options) -> Obj:
    """Errors: 400 for another kind, a wrong type, or (Strict) a field that doesn't exist."""
    prefix = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    if not isinstance(body, dict):
        raise bad_request(f"{prefix}: json: cannot unmarshal into Go value of type v1.{kind.kind}")
    given = (body.get("apiVersion", kind.api_version), body.get("kind", kind.kind))
    if given != (kind.api_version, kind.kind):
        version = str(given[0]).rpartition("/")[2]
        raise bad_request(
            f'{given[1]} in version "{version}" cannot be handled as a {kind.kind}: converting '
            f"({version}.{given[1]}) to ({kind.group or 'core'}.{kind.kind}): unknown conversion"
        )
    try:
        obj, unknown = _decoded(context, kind, body)
    except DecodeError as error:
        raise bad_request(f"{prefix}: {error}") from None
    if unknown and options.validation == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise bad_request(f"{prefix}: strict decoding error: {listed}")
    if unknown and options.validation == "Warn":
        options.warnings.extend(f'unknown field "{path}"' for path in unknown)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def normalise(context: Context, kind: Kind, obj: Obj) -> tuple[Obj, list[str]]:
    """A patched object read again by the schema. Errors: DecodeError."""
    out, unknown = _decoded(context, kind, obj)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **out}, unknown
