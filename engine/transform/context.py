"""What a transform knows besides the manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.api.model import Job
from engine.kubeschema import KubernetesTypes, shipped_types


@dataclass(frozen=True, slots=True)
class TransformContext:
    """One attempt of one job: `policies` is the pull policy of each container in this attempt."""

    job: Job
    source: str
    attempt: int
    policies: Mapping[str, str] = field(default_factory=dict)
    kubernetes: KubernetesTypes = shipped_types
