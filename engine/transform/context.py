"""What a transform knows besides the manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.api.kubernetes_schema import SHIPPED, KubernetesSchema
from engine.api.model import Job, Limits
from engine.errors import RenderError


@dataclass(frozen=True, slots=True)
class TransformContext:
    """One attempt of one job."""

    job: Job
    """The job, for everything that its spec says."""
    source: str
    """The source that its objects are labelled with."""
    attempt: int
    """The attempt's number."""
    policies: Mapping[str, str] = field(default_factory=dict)
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
