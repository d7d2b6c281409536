"""Ways through the manifest of a pod. A field that is null is as one that is left out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a field of the pod."""
Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """A field that a control forbids."""

    path: Path
    """The field, there or missing."""
    message: str
    """What it must be, to stand behind the field's name."""


Check = Callable[[Pod], Iterator[Violation]]
"""A pure function, one for each control."""


def field_of(value: Any, *path: str | int) -> Any:
    """The value at `path` below `value`; None where there is none."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        else:
            is_there = isinstance(value, list) and 0 <= step < len(value)
            value = value[step] if is_there else None
    return value


def entries(value: Any, *path: str) -> Iterator[tuple[int, Any]]:
    """(index, entry) of the list at `path` below `value`."""
    found = field_of(value, *path)
    for index, entry in enumerate(found if isinstance(found, list) else ()):
        if entry is not None:
            yield index, entry


def containers(pod: Pod) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """(path, container) of each container of every sort."""
    for name in CONTAINER_FIELDS:
        for index, container in entries(pod, "spec", name):
            yield ("spec", name, index), container


def pod_and_containers(pod: Pod) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The same, after the pod's own spec: all that have a security context."""
    yield ("spec",), field_of(pod, "spec")
    yield from containers(pod)


def violations(
    holders: Iterator[tuple[Path, Any]], *field: str, allowed: Callable[[Any], bool], message: str
) -> Iterator[Violation]:
    """`message` for each of the `holders` that has `field` with a value that isn't `allowed`."""
    for path, holder in holders:
        value = field_of(holder, *field)
        if value is not None and not allowed(value):
            yield Violation((*path, *field), message)


def in_user_namespace(pod: Pod) -> bool:
    """Whether root in the pod is nobody on the node, which some controls make allowance for."""
    return field_of(pod, "spec", "hostUsers") is False


def is_windows(pod: Pod) -> bool:
    """Whether it is for Windows, where the API refuses what some controls ask for."""
    return bool(field_of(pod, "spec", "os", "name") == "windows")
