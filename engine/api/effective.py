"""A spec over its defaults, which still knows where each value was written.

The engine's own defaults come first, then the operator's, then each folder's from the outside in,
then the job's own fields.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api.model import Config
from engine.api.schema_messages import dotted
from engine.api.yaml_reader import Document
from engine.durations import FOREVER, parse_duration
from engine.errors import Diagnostic, Severity, SourceLocation
from engine.refs import MAIN_CONTAINER

BUILT_IN: Mapping[str, Any] = {
    "timeout": "1h",
    "startTimeout": "10m",
    "ttlLeeway": "5m",
    "template": "job",
    "onChange": "Replace",
}
"""The engine's own defaults; the schema tells them to people."""

AFTER_FINISHED = "ttlAfterFinished"
TIME_LIMITS: Mapping[str, str] = {
    "timeout": "limits.maxTimeout",
    "startTimeout": "limits.maxStartTimeout",
    "ttl": "limits.maxTtl",
    AFTER_FINISHED: "limits.maxTtl",
}
"""Fields of the spec that hold durations, and the limit of each."""

_ENTRY_POINT = ("script", "command", "args")
FROM_SECRET = "fromSecret"  # noqa: S105 - a field's name
_SOURCES = ("value", "fromEnv", "fromFile", FROM_SECRET)


@dataclass(frozen=True, slots=True)
class EffectiveSpec:
    """Input of every check."""

    spec: Mapping[str, Any]
    """The job's own spec over the defaults."""
    namespace: str
    """Empty until the context's namespace is known."""
    layers: tuple[Document, ...]
    """What it is merged from: the job's own document, then its folders' defaults, nearest first."""
    config: Config
    """The operator's side, which has the outermost defaults."""

    @property
    def own(self) -> Document:
        """The job's own document."""
        return self.layers[0]

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.own.data["metadata"]["name"])

    def seconds(self, *path: str) -> float | None:
        """The duration at `path` below `spec`, cut to its limit; None where none can be read."""
        wanted, cap = self.wanted_seconds(*path), self.longest(path[0])
        return wanted if wanted is None or cap is None else min(wanted, cap)

    def wanted_seconds(self, *path: str) -> float | None:
        """The same as it is asked for."""
        value: Any = self.spec
        for step in path:
            value = value.get(step, {})
        try:
            return math.inf if value == FOREVER else parse_duration(value)
        except ValueError:
            return None

    def longest(self, name: str) -> float | None:
        """The limit of the durations in `spec.NAME`, if there is one."""
        limits = self.config.limits
        match name:
            case "timeout":
                return limits.max_timeout
            case "startTimeout":
                return limits.max_start_timeout
            case "ttl" | "ttlAfterFinished":
                return limits.max_ttl
        return None

    def place(self, *path: str | int, key: bool = False) -> SourceLocation:
        """Where the effective value at `path` was written; the job's own place if nowhere."""
        writer = self.writer(path)
        return writer.locate(path, key=key) if writer else self.own.locate(path[:1])

    def field(self, *path: str | int) -> str:
        """What the user who wrote the value at `path` calls it: `spec.services[0].image`."""
        return dotted((self.writer(path) or self.own).written_path(path))

    def error(self, message: str, hint: str, *path: str | int, key: bool = False) -> Diagnostic:
        """What is wrong with the value at `path`, or with its key."""
        return Diagnostic(self.place(*path, key=key), message, hint)

    def warning(self, message: str, hint: str, *path: str | int) -> Diagnostic:
        """What is probably not meant so."""
        return Diagnostic(self.place(*path), message, hint, Severity.WARNING)

    def writer(self, path: Sequence[str | int]) -> Document | None:
        """Which of the layers the effective value at `path` is of; None for the operator's."""
        return next((document for document in self.layers if has_value(document.data, path)), None)

    def is_written(self, *path: str | int) -> bool:
        """Whether the value at `path` is of the spec or of its folders, not of the operator."""
        return self.writer(path) is not None

    def times(self) -> Iterator[tuple[str, ...]]:
        """The paths below `spec` of the durations that are given."""
        for name in TIME_LIMITS:
            value = self.spec.get(name)
            if name == AFTER_FINISHED:
                yield from ((name, end) for end in value or ())
            elif value is not None:
                yield (name,)

    def containers(self) -> Iterator[tuple[str, tuple[str | int, ...], Mapping[str, Any]]]:
        """(name, path, container) of each container of the spec: init, main, services."""
        for field in ("initContainers", "services"):
            for index, container in enumerate(self.spec.get(field, ())):
                yield container["name"], ("spec", field, index), container
        yield MAIN_CONTAINER, ("spec",), self.spec


def effective_spec(
    document: Document, above: Sequence[Document], config: Config, namespace: str
) -> EffectiveSpec:
    """`document` over the defaults `above` it, nearest first, and the operator's.

    `namespace` is for a spec that names none, and goes before those of the defaults.
    """
    layers = (document, *above)
    specs = [BUILT_IN, config.defaults, *(d.data.get("spec", {}) for d in reversed(layers))]
    named = [d.data.get("metadata", {}).get("namespace") for d in layers]
    chosen = named[0] or namespace or next((name for name in named if name), "")
    return EffectiveSpec(merge_specs(specs), chosen, layers, config)


def merge_specs(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One spec out of `layers`, later ones winning.

    Mappings merge key by key, everything else is replaced whole. Script, command and args go
    together: a layer that sets one of them drops all three of the layers before it.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        if any(name in layer for name in _ENTRY_POINT):
            merged = {key: value for key, value in merged.items() if key not in _ENTRY_POINT}
        merged = merge_mappings(merged, layer)
    return merged


def merge_mappings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with `above` on top; a secret's source is one value, never a mix of two."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        mixes = isinstance(before, Mapping) and isinstance(value, Mapping) and not _is_source(value)
        merged[key] = merge_mappings(before, value) if mixes else value  # type: ignore[arg-type]
    return merged


def _is_source(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in _SOURCES


def has_value(data: Any, path: Sequence[str | int]) -> bool:
    """Whether there is anything at `path`."""
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
