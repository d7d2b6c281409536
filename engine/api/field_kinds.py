"""What a change of a field means: which fields of a spec say what runs, and which don't."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from engine.api.effective import BUILT_IN
from engine.api.model import RETRIED
from engine.durations import parse_duration


class FieldKind(StrEnum):
    """The three kinds of fields; the value says what a change of such a field does."""

    RUNS = "what runs: a change starts a new run"
    TRIED = "how it is tried: a change tries a failed job again, and never a success"
    KEPT = "how it is kept: a change is written onto the pod, and nothing runs"


FIELD_KINDS: Mapping[str, FieldKind] = {
    "spec.timeout": FieldKind.TRIED,
    "spec.startTimeout": FieldKind.TRIED,
    "spec.retry": FieldKind.TRIED,
    "spec.pullPolicy": FieldKind.TRIED,
    "spec.services.pullPolicy": FieldKind.TRIED,
    "spec.initContainers.pullPolicy": FieldKind.TRIED,
    "spec.disruption": FieldKind.TRIED,
    "spec.onChange": FieldKind.TRIED,
    "spec.dependsOn": FieldKind.TRIED,
    "spec.ttl": FieldKind.KEPT,
    "spec.ttlLeeway": FieldKind.KEPT,
    "spec.ttlAfterFinished": FieldKind.KEPT,
    "spec.hold": FieldKind.KEPT,
    "spec.suspend": FieldKind.KEPT,
    "spec.managedBy": FieldKind.KEPT,
    "metadata.labels": FieldKind.KEPT,
    "metadata.annotations": FieldKind.KEPT,
}
"""Every other field says what runs."""

CONTAINER_LISTS = ("services", "initContainers")
_DURATIONS = ("timeout", "startTimeout")
_CONTAINER_DEFAULTS: Mapping[str, Any] = {
    "securityContext": {"allowPrivilegeEscalation": False},
    "resources": {},
}
_DEFAULTS: Mapping[str, Any] = {
    **BUILT_IN,
    **{name: parse_duration(BUILT_IN[name]) for name in _DURATIONS},
    **_CONTAINER_DEFAULTS,
    "podSecurityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    "disruption": "allow",
    "rerun": "",
    "suspend": False,
}
"""The engine's own, as far as a spec can write them out."""
_MERGED = ("securityContext", "podSecurityContext", "resources")


def field_kind(path: Sequence[str]) -> FieldKind:
    """Of the field at `path` in a JobSpec, or of the nearest one around it that has a kind."""
    for end in range(len(path), 0, -1):
        if kind := FIELD_KINDS.get(".".join(path[:end])):
            return kind
    return FieldKind.RUNS


def fields_of(spec: Mapping[str, Any]) -> Iterator[tuple[str, FieldKind, Any]]:
    """Each field of a valid spec, its kind and its value, without what says no more than a default.

    A list of containers is two fields: the containers, and their own pull policies.
    """
    defaults = _DEFAULTS
    if "serviceAccountName" not in spec:
        defaults = {**_DEFAULTS, "automountServiceAccountToken": False}
    for name, value in _without_defaults(spec, defaults).items():
        if name in CONTAINER_LISTS:
            policies = {one["name"]: one.pop("pullPolicy") for one in value if "pullPolicy" in one}
            if policies:
                yield f"spec.{name}.pullPolicy", FieldKind.TRIED, policies
        yield f"spec.{name}", field_kind(("spec", name)), value


def _without_defaults(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, written in fields.items():
        value = written
        if name in _DURATIONS:
            value = parse_duration(value)
        elif name in CONTAINER_LISTS:
            value = [_without_defaults(one, _CONTAINER_DEFAULTS) for one in value]
        elif name in _MERGED:
            value = _without_defaults(value, defaults[name])
        elif name == "retry":
            value = _what_is_retried(value)
        elif name == "pullPolicy" and isinstance(value, str):
            value = [value]
        elif name == "dependsOn":
            named = ({"name": one} if isinstance(one, str) else one for one in value)
            value = [{"on": "succeeded", **one} for one in named]
        if value != defaults.get(name) and value not in ({}, []):
            kept[name] = value
    return kept


def _what_is_retried(retry: Mapping[str, Any]) -> dict[str, Any]:
    if not retry.get("max"):
        return {}
    return {"max": retry["max"], "on": sorted(retry.get("on", RETRIED))}
