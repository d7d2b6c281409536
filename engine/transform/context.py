"""What a transform knows besides the manifest, and edits that copy it; nothing is ever mutated."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from engine.api.kubernetes_schema import SHIPPED, KubernetesSchema
from engine.api.model import Job, Limits
from engine.api.pod_fields import CONTAINER_FIELDS
from engine.errors import RenderError
from engine.wellknown import reserved_metadata


class TransformContext(Struct, frozen=True):
    """One attempt of one job."""

    job: Job
    """The job, for everything that its spec says."""
    source: str
    """The source that its objects are labelled with."""
    attempt: int
    """The attempt's number."""
    policies: Mapping[str, str] = {}
    """Pull policy of each container that has a list of them, in this attempt."""
    limits: Limits = field(default_factory=Limits)
    """What the operator allows, for fields that the spec leaves to a default."""
    kubernetes: KubernetesSchema = SHIPPED
    """The types by which a pod patch merges."""

    def template_error(self, manifest: Mapping[str, Any], fault: str) -> RenderError:
        """What the job's template set made has a `fault`."""
        template_set, kind = self.job.spec["template"], manifest["kind"]
        return RenderError(
            f"the template set {template_set} makes a {kind} in which {fault}",
            where=self.job.place,
        )


def with_field(manifest: Mapping[str, Any], *path: str, value: Any) -> dict[str, Any]:
    """Copy of `manifest` with `value` at `path`; mappings on the way are made where missing."""
    head, *rest = path
    changed = with_field(manifest.get(head) or {}, *rest, value=value) if rest else value
    return {**manifest, head: changed}


def with_containers(
    pod: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Copy of `pod` with `change` applied to every container of every sort."""
    spec = {**pod["spec"]}
    for name in CONTAINER_FIELDS:
        if spec.get(name):
            spec[name] = [*map(change, spec[name])]
    return {**pod, "spec": spec}


def metadata_error(manifest: Mapping[str, Any]) -> str:
    """The reserved field that is set, as `metadata.finalizers is the engine's own`; else ""."""
    for path in reserved_metadata(manifest.get("metadata")):
        return f"{'.'.join(('metadata', *path))} is the engine's own"
    return ""
