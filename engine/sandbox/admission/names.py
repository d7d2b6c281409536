"""Names, labels and annotations: the formats that the API server insists on, in its words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.sandbox.errors import FieldError, field_invalid, field_required, field_too_long

if TYPE_CHECKING:
    import random

    from engine.sandbox.values import Json, Obj

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(rf"({_QUALIFIED})?").fullmatch
_is_key = re.compile(r"[-._a-zA-Z0-9]+").fullmatch

LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_QUALIFIED_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_QUALIFIED}')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '({_QUALIFIED})?')"
)
_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
ANNOTATIONS_SIZE = 256 * 1024
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_PREFIX_LENGTH = 58


def generated(prefix: str, chance: random.Random) -> str:
    """``generateName``: the prefix and five characters that spell no word."""
    return prefix[:_PREFIX_LENGTH] + "".join(chance.choices(_SUFFIX, k=5))


def label_errors(path: str, value: str) -> list[FieldError]:
    """Errors of a value that must be a DNS label."""
    return [field_invalid(path, value, words) for words in label_faults(value)]


def label_faults(value: str) -> list[str]:
    """Why a name is no DNS label."""
    too_long = len(value) > LABEL_LENGTH
    out = [f"must be no more than {LABEL_LENGTH} characters"] if too_long else []
    if not _is_label(value):
        out.append("must not contain dots" if _is_subdomain(value) else LABEL_WORDS)
    return out


def subdomain_errors(path: str, value: str) -> list[FieldError]:
    """Errors of a value that must be a DNS subdomain."""
    if len(value) > SUBDOMAIN_LENGTH:
        return [field_invalid(path, value, f"must be no more than {SUBDOMAIN_LENGTH} characters")]
    return [] if _is_subdomain(value) else [field_invalid(path, value, SUBDOMAIN_WORDS)]


def qualified_errors(path: str, value: str) -> list[FieldError]:
    """Errors of a value that must be a qualified name: `[prefix/]name`."""
    prefix, slash, name = value.rpartition("/")
    if slash and not prefix:
        return [field_invalid(path, value, "prefix part must be non-empty")]
    if slash and not _is_subdomain(prefix):
        return [field_invalid(path, value, f"prefix part {SUBDOMAIN_WORDS}")]
    if not name:
        return [field_invalid(path, value, "name part must be non-empty")]
    if len(name) > LABEL_LENGTH:
        words = f"name part must be no more than {LABEL_LENGTH} characters"
        return [field_invalid(path, value, words)]
    return [] if _is_qualified(name) else [field_invalid(path, value, _QUALIFIED_WORDS)]


def key_errors(path: str, keys: Json) -> list[FieldError]:
    """The keys of a ConfigMap or a Secret."""
    out = []
    for key in keys:
        if len(key) > SUBDOMAIN_LENGTH:
            words = f"must be no more than {SUBDOMAIN_LENGTH} characters"
            out.append(field_invalid(f"{path}[{key}]", key, words))
        elif key in (".", "..") or key.startswith(".."):
            what = "must not be" if key in (".", "..") else "must not start with"
            out.append(field_invalid(f"{path}[{key}]", key, f"{what} '{key[:2]}'"))
        elif not _is_key(key):
            out.append(field_invalid(f"{path}[{key}]", key, _KEY_WORDS))
    return out


def metadata_errors(meta: Obj, *, label_name: bool = False) -> list[FieldError]:
    """Everything that is checked about any object's metadata."""
    name = meta.get("name", "")
    if not name:
        return [field_required("metadata.name", "name or generateName is required")]
    out = (label_errors if label_name else subdomain_errors)("metadata.name", name)
    for key, value in (meta.get("labels") or {}).items():
        out += qualified_errors("metadata.labels", key)
        if len(value) > LABEL_LENGTH:
            words = f"must be no more than {LABEL_LENGTH} characters"
            out.append(field_invalid("metadata.labels", value, words))
        elif not _is_label_value(value):
            out.append(field_invalid("metadata.labels", value, _VALUE_WORDS))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        out += qualified_errors("metadata.annotations", key.lower())
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_SIZE:
        out.append(field_too_long("metadata.annotations", ANNOTATIONS_SIZE))
    for name in meta.get("finalizers", ()):
        out += qualified_errors("metadata.finalizers", name)
        if "/" not in name and name not in ("foregroundDeletion", "orphan", "kubernetes"):
            words = "name is neither a standard finalizer name nor is it fully qualified"
            out.append(field_invalid("metadata.finalizers[0]", name, words))
    return out + _owner_errors(meta.get("ownerReferences", ()))


def _owner_errors(owners: Json) -> list[FieldError]:
    out = []
    path = "metadata.ownerReferences"
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                subject = "version " if field == "apiVersion" else ""
                words = f"{subject}must not be empty"
                out.append(field_invalid(f"{path}.{field}", "", words))
    controllers = [f"{o.get('kind')}/{o.get('name')}" for o in owners if o.get("controller")]
    if len(controllers) > 1:
        words = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            + " and ".join(controllers[:2])
        )
        out.append(field_invalid(path, list(owners), words))
    return out
