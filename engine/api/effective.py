"""A spec over its defaults, which still knows where each value was written.

The engine's own defaults come first, then the operator's, then each folder's from the outside in,
then the job's own fields.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Struct, to_builtins

from engine.api.model import Config, Limits
from engine.api.yaml_reader import Document, Path
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
"""The engine's own defaults; the schema repeats them for readers."""

AFTER_FINISHED = "ttlAfterFinished"
TIME_LIMITS: Mapping[str, str] = {
    "timeout": "maxTimeout",
    "startTimeout": "maxStartTimeout",
    "ttl": "maxTtl",
    AFTER_FINISHED: "maxTtl",
}
"""Fields of the spec that hold durations, and the limit of each."""

_ENTRY_POINT = frozenset({"script", "command", "args"})
FROM_SECRET = "fromSecret"  # noqa: S105 - a field's name
_SOURCES = ("value", "fromEnv", "fromFile", FROM_SECRET)


class Time(NamedTuple):
    """A duration of a spec, in seconds; None where none can be read."""

    wanted: float | None
    longest: float | None
    """The limit, if there is one."""
    seconds: float | None
    """`wanted`, cut to the limit."""


class SpecContainer(NamedTuple):
    """A container that a spec names: its main one, a service, or an init container."""

    name: str
    path: Path
    spec: Mapping[str, Any]
    wanted: tuple[str, ...]
    """Its pull policies, or else the job's."""
    policies: tuple[str, ...]
    """Those of them that the operator allows."""


class EffectiveSpec(Struct, frozen=True):
    """Input of every check."""

    spec: Mapping[str, Any]
    """The job's own spec over the defaults."""
    metadata: Mapping[str, Any]
    """The same; its namespace is empty until the context's is known."""
    layers: tuple[Document, ...]
    """The documents it is merged from: the job's own, then its folders' defaults, nearest first."""
    config: Config
    """The operator's side, which has the outermost defaults."""
    times: Mapping[tuple[str, ...], Time]
    """The durations that are given, by their paths below `spec`."""
    containers: tuple[SpecContainer, ...]
    """The main one first."""

    def place(self, path: Path, *, key: bool = False) -> SourceLocation:
        """Where the effective value at `path` was written; the job's own place if nowhere."""
        writer = self.writer(path)
        return writer.locate(path, key=key) if writer else self.layers[0].locate(path[:1])

    def error(self, path: Path, message: str, hint: str, *, key: bool = False) -> Diagnostic:
        """An error at the value at `path`, or at its key."""
        return Diagnostic(self.place(path, key=key), message, hint)

    def warning(self, path: Path, message: str, hint: str, *, key: bool = False) -> Diagnostic:
        """A warning at the same place."""
        return Diagnostic(self.place(path, key=key), message, hint, Severity.WARNING)

    def writer(self, path: Path) -> Document | None:
        """Which of the layers the effective value at `path` is of; None for the operator's."""
        return next((document for document in self.layers if has_value(document.data, path)), None)


def effective_spec(
    document: Document, above: Sequence[Document], config: Config, namespace: str
) -> EffectiveSpec:
    """`document` over the defaults `above` it, nearest first, and the operator's.

    `namespace` is for a spec that names none, and goes before those of the defaults.
    """
    layers = (document, *above)
    spec: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for layer in (BUILT_IN, config.defaults):
        spec = _merged_spec(spec, layer)
    for one in reversed(layers):
        spec = _merged_spec(spec, one.data.get("spec", {}))
        metadata = merge_mappings(metadata, one.data.get("metadata", {}))
    own = document.data["metadata"].get("namespace")
    metadata["namespace"] = own or namespace or metadata.get("namespace", "")
    times = dict(_times(spec, config.limits))
    containers = tuple(_containers(spec, config.limits.allowed_pull_policies))
    return EffectiveSpec(spec, metadata, layers, config, times, containers)


def _times(spec: Mapping[str, Any], limits: Limits) -> Iterator[tuple[tuple[str, ...], Time]]:
    longest = to_builtins(limits)
    for name in (*TIME_LIMITS, "ttlLeeway"):
        given, cap = spec.get(name), longest.get(TIME_LIMITS.get(name))
        values = given if isinstance(given, Mapping) else {"": given}
        for end, value in values.items():
            if value is None:
                continue
            wanted = None
            with suppress(ValueError):
                wanted = math.inf if value == FOREVER else parse_duration(value)
            seconds = wanted if wanted is None or cap is None else min(wanted, cap)
            yield (name, end) if end else (name,), Time(wanted, cap, seconds)


def _containers(
    spec: Mapping[str, Any], allowed: tuple[str, ...] | None
) -> Iterator[SpecContainer]:
    found: list[tuple[str, Path, Mapping[str, Any]]] = [(MAIN_CONTAINER, ("spec",), spec)]
    for field in ("initContainers", "services"):
        for index, container in enumerate(spec.get(field, ())):
            found.append((container["name"], ("spec", field, index), container))
    for name, path, container in found:
        policy = container.get("pullPolicy", spec.get("pullPolicy")) or ()
        wanted = (policy,) if isinstance(policy, str) else tuple(policy)
        policies = wanted if allowed is None else tuple(one for one in wanted if one in allowed)
        yield SpecContainer(name, path, container, wanted, policies)


def _merged_spec(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key, everything else is replaced whole. Script, command and args go
    together: a layer that sets one of them drops all three of the layers before it.
    """
    if not _ENTRY_POINT.isdisjoint(above):
        for name in _ENTRY_POINT:
            below.pop(name, None)
    return merge_mappings(below, above)


def merge_mappings(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with `above` on top; a secret's source is one value, never a mix of two."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            is_source = len(value) == 1 and next(iter(value)) in _SOURCES
            merged[key] = value if is_source else merge_mappings(before, value)
        else:
            merged[key] = value
    return merged


def has_value(data: Any, path: Sequence[str | int]) -> bool:
    """Whether there is anything at `path`."""
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
