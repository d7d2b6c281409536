"""The types of what the chart makes, beside those that the engine ships.

`python -m tests.deploy.kubernetes_types SWAGGER RELEASE` makes them anew; `make kubernetes-types`
does it along with the engine's own.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from deploy.kubernetes_types import as_text, from_openapi
from engine.api.kubernetes_schema import TYPES, KubernetesSchema
from engine.api.schema import check_manifest
from engine.api.versions import parse_schema
from engine.errors import SourceLocation

_FILE = Path(__file__).with_name("types.schema.json")
_API = "io.k8s.api"
_KINDS = {
    f"{_API}.admissionregistration.v1": [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ],
    f"{_API}.apps.v1": ["Deployment"],
    f"{_API}.batch.v1": ["CronJob"],
    f"{_API}.core.v1": ["Namespace", "Service", "ServiceAccount"],
    f"{_API}.networking.v1": ["NetworkPolicy"],
    f"{_API}.policy.v1": ["PodDisruptionBudget"],
    f"{_API}.rbac.v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
}


def faults_of(manifest: dict[str, Any]) -> list[str]:
    """What Kubernetes would refuse in a manifest of the chart."""
    return [
        problem.message
        for problem in check_manifest(manifest, _types(), lambda _: SourceLocation(""))
    ]


@cache
def _types() -> KubernetesSchema:
    return KubernetesSchema(lambda _: parse_schema(_FILE.read_text(), TYPES))


if __name__ == "__main__":
    kinds = [f"{group}.{kind}" for group, names in _KINDS.items() for kind in names]
    types = from_openapi(json.loads(Path(sys.argv[1]).read_bytes()), kinds)
    _FILE.write_text(as_text(types, sys.argv[2]))
