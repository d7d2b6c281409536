"""Change one place of a manifest by copying the way to it; nothing is ever mutated."""

from collections.abc import Callable, Mapping
from typing import Any

from engine.api.pod_fields import CONTAINER_FIELDS


def with_field(manifest: Mapping[str, Any], *path: str, value: Any) -> dict[str, Any]:
    """Copy of `manifest` with `value` at `path`; mappings on the way are made where missing."""
    head, *rest = path
    changed = with_field(manifest.get(head) or {}, *rest, value=value) if rest else value
    return {**manifest, head: changed}


def with_containers(
    pod: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Copy of `pod` with `change` applied to every container of every sort."""
    spec = pod["spec"]
    changed = {n: [change(c) for c in spec[n]] for n in CONTAINER_FIELDS if spec.get(n)}
    return {**pod, "spec": {**spec, **changed}}


def is_pod(manifest: Mapping[str, Any]) -> bool:
    """Whether the manifest is a Pod's."""
    return bool(manifest["kind"] == "Pod")
