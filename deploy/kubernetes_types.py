"""Make `schemas/kubernetes` anew: `python -m deploy.kubernetes_types SWAGGER RELEASE`.

`make kubernetes-types` finds its arguments: `swagger.json` of the Go module `k8s.io/kubernetes`,
and the release. The output of `kubectl get --raw /openapi/v2` will do as well.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.api.kubernetes_schema import CORE, PATCH, TYPES, for_patches, from_openapi

SCHEMAS = Path(__file__).parents[1] / "schemas"
SERVED = (
    *(
        f"{CORE}.{kind}"
        for kind in ("Binding", "Event", "Namespace", "Node", "ResourceQuota", "ServiceAccount")
    ),
    "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    "io.k8s.api.coordination.v1.Lease",
    "io.k8s.api.events.v1.Event",
    "io.k8s.api.policy.v1.Eviction",
)
"""What the sandbox serves besides the kinds that the engine renders."""
_EXPLAINED = (f"{CORE}.PodSpec", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
"""A status is never patched: its descriptions would be a tenth of the files."""


def generate(document: Any, release: str) -> dict[str, str]:
    """The text of each file by its path below `schemas`. Errors: TypeError."""
    types = from_openapi(document, SERVED, _EXPLAINED)
    return {TYPES: as_text(types, release), PATCH: as_text(for_patches(types), release)}


def as_text(schema: Mapping[str, Any], release: str) -> str:
    """One definition a line, so that a new release can be compared with the one before."""
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": f"Types of Kubernetes {release}, Apache License 2.0 (make kubernetes-types).",
    }
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(node, ensure_ascii=False, separators=(',', ':'))}"
        for name, node in schema["definitions"].items()
    )
    return f'{json.dumps(head, indent=0)[:-2]},\n"definitions": {{\n{lines}\n}}}}\n'


if __name__ == "__main__":
    for name, text in generate(json.loads(Path(sys.argv[1]).read_bytes()), sys.argv[2]).items():
        (SCHEMAS / name).write_text(text, encoding="utf-8")
