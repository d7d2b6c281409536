"""Secrets and ConfigMaps: stringData, keys, sizes, types, and what may not change."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from engine.sandbox.admission.names import key_errors
from engine.sandbox.errors import (
    FieldError,
    field_forbidden,
    field_invalid,
    field_required,
    field_too_long,
)

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

MOST_BYTES = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_REQUIRED_KEYS = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def default_secret(secret: Obj) -> None:
    """Fill in what the server fills in: the type, and `data` for `stringData`."""
    secret.setdefault("type", "Opaque")
    if texts := secret.pop("stringData", None):
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        secret["data"] = {**secret.get("data", {}), **encoded}


def secret_errors(secret: Obj) -> list[FieldError]:
    """What is wrong with a Secret's data."""
    data = secret.get("data", {})
    out = key_errors("data", data)
    if sum(len(value) * 3 // 4 for value in data.values()) > MOST_BYTES:
        out.append(field_too_long("data", MOST_BYTES))
    for key in _REQUIRED_KEYS.get(secret["type"], ()):
        if key not in data:
            out.append(field_required(f"data[{key}]"))
        elif key.startswith(".docker") and not _is_json_object(data[key]):
            words = "invalid character 'x' looking for beginning of value"
            out.append(field_invalid(f"data[{key}]", "<secret contents redacted>", words))
    return out


def _is_json_object(encoded: str) -> bool:
    try:
        return isinstance(json.loads(base64.b64decode(encoded)), dict)
    except ValueError:
        return False


def config_map_errors(config: Obj) -> list[FieldError]:
    """What is wrong with a ConfigMap's data."""
    data, binary = config.get("data", {}), config.get("binaryData", {})
    out = key_errors("data", data) + key_errors("binaryData", binary)
    for key in data.keys() & binary.keys():
        words = "duplicate of key present in data"
        out.append(field_invalid(f"binaryData[{key}]", key, words))
    size = sum(len(value.encode("utf-8", "replace")) for value in data.values())
    if size + sum(len(value) * 3 // 4 for value in binary.values()) > MOST_BYTES:
        out.append(field_too_long("[]", MOST_BYTES))
    return out


def change_errors(old: Obj, new: Obj) -> list[FieldError]:
    """For both kinds: a Secret's type never changes, an immutable object's data neither."""
    out = []
    if old.get("type") != new.get("type"):
        out.append(field_invalid("type", new.get("type", ""), "field is immutable"))
    if old.get("immutable"):
        if not new.get("immutable"):
            out.append(field_forbidden("immutable", _IMMUTABLE))
        out.extend(
            field_forbidden(name, _IMMUTABLE)
            for name in ("data", "binaryData")
            if old.get(name, {}) != new.get(name, {})
        )
    return out
