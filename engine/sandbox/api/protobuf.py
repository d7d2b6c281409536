"""The few bodies that kubectl sends as protobuf only: what ``kubectl create`` and ``auth`` make.

A small table of field numbers is enough for them. A body that says more than the table knows is
refused as unsupported, never read in part.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from engine.sandbox.errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.values import Json, Obj

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_VARINT, _LENGTH = 0, 2
_MORE = 0x80

# Per message: field number -> name and type. ``[T]`` a list, ``{T}`` a map from string.
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Unknown": {1: ("type", "TypeMeta"), 2: ("raw", "raw"), 3: ("", "str"), 4: ("", "str")},
    "TypeMeta": {1: ("apiVersion", "str"), 2: ("kind", "str")},
    "ObjectMeta": {
        1: ("name", "str"),
        2: ("generateName", "str"),
        3: ("namespace", "str"),
        11: ("labels", "{str}"),
        12: ("annotations", "{str}"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta")},
    "ServiceAccount": {1: ("metadata", "ObjectMeta")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{str}"),
        3: ("binaryData", "{bytes}"),
        4: ("immutable", "bool"),
    },
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{bytes}"),
        3: ("type", "str"),
        4: ("stringData", "{str}"),
        5: ("immutable", "bool"),
    },
    "ResourceQuota": {1: ("metadata", "ObjectMeta"), 2: ("spec", "QuotaSpec")},
    "QuotaSpec": {1: ("hard", "{Quantity}"), 2: ("scopes", "[str]")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "str"),
        5: ("dryRun", "[str]"),
    },
    "Preconditions": {1: ("uid", "str"), 2: ("resourceVersion", "str")},
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "AccessSpec")},
    "AccessSpec": {1: ("resourceAttributes", "ResourceAttributes")},
    "ResourceAttributes": {
        1: ("namespace", "str"),
        2: ("verb", "str"),
        3: ("group", "str"),
        4: ("version", "str"),
        5: ("resource", "str"),
        6: ("subresource", "str"),
        7: ("name", "str"),
    },
    "SelfSubjectRulesReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "RulesSpec")},
    "RulesSpec": {1: ("namespace", "str")},
}


def read_protobuf(body: bytes) -> Obj:
    """Errors: 415 for a kind or a field that isn't in the table, or for what isn't protobuf."""
    try:
        if not body.startswith(_MAGIC):
            raise _unsupported("no protobuf")
        envelope = _message("Unknown", body[len(_MAGIC) :])
        names = envelope.get("type", {})
        kind = names.get("kind", "")
        if kind not in _MESSAGES:
            raise _unsupported(kind)
        return {**names, **_message(kind, envelope.get("raw", b""))}
    except (IndexError, UnicodeDecodeError):
        raise _unsupported("broken protobuf") from None


def _unsupported(what: str) -> StatusError:
    message = f"the sandbox does not read {what} as protobuf: send application/json"
    return StatusError(415, "UnsupportedMediaType", message)


def _message(name: str, data: bytes) -> Obj:
    known = _MESSAGES[name]
    out: Obj = {}
    for number, value in _fields(data):
        field, kind = known.get(number, ("", ""))
        if not kind and _says_something(value):
            raise _unsupported(f"field {number} of {name}")
        if not field:
            continue
        if kind.startswith("["):
            out.setdefault(field, []).append(_value(kind[1:-1], value))
        elif kind.startswith("{"):
            pair = dict(_fields(_bytes(value)))
            key = _bytes(pair.get(1, b"")).decode()
            out.setdefault(field, {})[key] = _value(kind[1:-1], pair.get(2, b""))
        else:
            out[field] = _value(kind, value)
    return out


def _says_something(value: int | bytes) -> bool:
    """False for zero values, and for messages of nothing but zero values, which Go writes out."""
    if isinstance(value, int):
        return bool(value)
    try:
        return any(_says_something(below) for _, below in _fields(value))
    except (IndexError, StatusError):
        return True


def _value(kind: str, value: int | bytes) -> Json:
    match kind:
        case "str":
            return _bytes(value).decode()
        case "raw":
            return value
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "bool":
            return bool(value)
        case "int":
            return value
        case "Quantity":
            text = dict(_fields(_bytes(value))).get(1, b"")
            return _bytes(text).decode()
    return _message(kind, _bytes(value))


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _unsupported("broken protobuf")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers with their raw values."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == _VARINT:
            number, at = _varint(data, at)
            yield tag >> 3, number
        elif tag & 7 == _LENGTH:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise IndexError
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise _unsupported("broken protobuf")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte % _MORE) << shift
        if byte < _MORE:
            return value, at
        shift += 7
