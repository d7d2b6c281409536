"""What a transform knows besides the manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.api.model import Job, Limits
from engine.kubeschema import KubernetesTypes, shipped_types


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
    kubernetes: KubernetesTypes = shipped_types
    """The types by which a pod patch merges."""
