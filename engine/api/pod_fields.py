"""Ways through the manifest of a pod, and through a patch of one.

A field that is null is as one that is left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.api.kubernetes_schema import KubernetesSchema, Type

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder/"
DROP = "$deleteFromPrimitiveList/"
"""What a strategic merge patch has besides fields."""
CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a field of the pod."""
Pod = Mapping[str, Any]
Field = tuple[str, ...]
"""A field of a pod as `kubectl explain` names it: without the indexes of lists."""


def field_of(value: Any, *path: str | int) -> Any:
    """The value at `path` below `value`; None where there is none."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        else:
            is_there = isinstance(value, list) and 0 <= step < len(value)
            value = value[step] if is_there else None
    return value


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, value) of a value and of all that is in it."""
    yield path, value
    if isinstance(value, dict | list):
        for step, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from walk(below, (*path, step))


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


def field_path(kubernetes: KubernetesSchema, text: str) -> Field | None:
    """The steps of a dotted name, as `spec.containers.resources`; None if no pod has such a field.

    What follows a map is its key, dots and all: `metadata.annotations.example.com/team`.
    """
    kind = kubernetes.kind("v1", "Pod")
    steps: list[str] = []
    rest = text
    while rest:
        while "items" in kind:
            kind = kubernetes.item(kind)
        if kind.get("additionalProperties"):
            return (*steps, rest)
        step, _, rest = rest.partition(".")
        if step not in kind.get("properties", ()):
            return None
        steps.append(step)
        kind = kubernetes.below(kind, step)
    return tuple(steps) or None


def changed_fields(
    kubernetes: KubernetesSchema, patch: Mapping[str, Any]
) -> Iterator[tuple[Path, Field]]:
    """(path in the patch, field of the pod) of everything that the patch sets or removes.

    A directive that acts on all of a mapping or a list changes that as a whole, and so does a list
    that has no merge key.
    """
    yield from _changed(kubernetes, kubernetes.kind("v1", "Pod"), patch, (), ())


def _changed(
    kubernetes: KubernetesSchema, kind: Type, value: Any, path: Path, field: Field
) -> Iterator[tuple[Path, Field]]:
    if isinstance(value, Mapping) and value and not {DIRECTIVE, RETAIN} & value.keys():
        for key, item in value.items():
            name = str(key).removeprefix(ORDER).removeprefix(DROP)
            below = kubernetes.below(kind, name) if name == key else {}
            yield from _changed(kubernetes, below, item, (*path, key), (*field, name))
    elif isinstance(value, list) and (merge_key := merge_key_of(kind)):
        for index, item in enumerate(value):
            is_entry = isinstance(item, Mapping) and DIRECTIVE not in item
            rest = {k: v for k, v in item.items() if k != merge_key} if is_entry else {}
            yield from _changed(kubernetes, kubernetes.item(kind), rest, (*path, index), field)
    else:
        yield path, field


def merge_key_of(kind: Type) -> str:
    """By which a strategic merge patch merges the items of a list; "" if it replaces the list."""
    merges = "merge" in kind.get("x-kubernetes-patch-strategy", "").split(",")
    return str(kind.get("x-kubernetes-patch-merge-key", "")) if merges else ""
