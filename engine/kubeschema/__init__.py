"""What fields Kubernetes' kinds have: one table of types, made from the API's own OpenAPI.

The offline checks, the pod patch and the sandbox read the same table, so that they can't disagree.
"""

from engine.kubeschema.shipped import KubernetesTypes, read_types, shipped_types

__all__ = ["KubernetesTypes", "read_types", "shipped_types"]
