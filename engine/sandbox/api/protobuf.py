"""The one body that clients send as protobuf only: what ``kubectl create namespace`` makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.errors import StatusError

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_LENGTH = 2
_MORE = 0x80
_TYPE, _RAW, _METADATA, _KIND, _NAME = 1, 2, 1, 2, 1
"""Numbers of the fields of Unknown, Namespace, TypeMeta and ObjectMeta."""


def read_protobuf(body: bytes) -> Obj:
    """Errors: 415 for all but a Namespace, or for what isn't protobuf."""
    try:
        envelope = _fields(body.removeprefix(_MAGIC)) if body.startswith(_MAGIC) else {}
        if _fields(envelope[_TYPE])[_KIND] == b"Namespace":
            name = _fields(_fields(envelope[_RAW])[_METADATA])[_NAME].decode()
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    except (KeyError, IndexError, UnicodeDecodeError):
        pass
    message = "the sandbox reads only a Namespace as protobuf: send application/json"
    raise StatusError(415, "UnsupportedMediaType", message)


def _fields(data: bytes) -> dict[int, bytes]:
    """Messages and texts by field number. Errors: IndexError, KeyError."""
    out, at = {}, 0
    while at < len(data):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        if tag & 7 == _LENGTH:
            out[tag >> 3] = data[at : at + size]
            at += size
    return out


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte % _MORE) << shift
        if byte < _MORE:
            return value, at
        shift += 7
