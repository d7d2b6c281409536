"""Change one place of a manifest by copying the way to it; nothing is ever mutated."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

CONTAINER_FIELDS = ("initContainers", "containers")


def with_field(manifest: Mapping[str, Any], *path: str, value: Any) -> dict[str, Any]:
    """Copy of `manifest` with `value` at `path`; mappings on the way are made where missing."""
    head, *rest = path
    changed = with_field(manifest.get(head) or {}, *rest, value=value) if rest else value
    return {**manifest, head: changed}


def with_containers(
    pod: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Copy of `pod` with `change` applied to every container and init container."""
    spec = pod["spec"]
    changed = {n: [change(c) for c in spec[n]] for n in CONTAINER_FIELDS if spec.get(n)}
    return {**pod, "spec": {**spec, **changed}}


def containers_of(pod: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every container of a pod, init containers first."""
    for name in CONTAINER_FIELDS:
        yield from pod["spec"].get(name) or ()


def is_pod(manifest: Mapping[str, Any]) -> bool:
    """Whether the manifest is a Pod's."""
    return bool(manifest["kind"] == "Pod")
