"""Start jobs whose objects are rendered already: the yardstick of `start-jobs`.

    python -m benchmarks.bare_start KUBECONFIG JOBS

JOBS is JSON: of each job its pod, its Secret and ConfigMap, its record. It knows nothing of the
engine, and makes the same five writes of each.
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.bare import Bare, in_threads

_JSON_PATCH = "application/json-patch+json"


def main() -> None:
    bare = Bare(Path(sys.argv[1]))
    in_threads(lambda job: _start(bare, job), json.loads(Path(sys.argv[2]).read_bytes()))


def _start(bare: Bare, job: dict[str, Any]) -> None:
    path = f"/api/v1/namespaces/{job['namespace']}"
    metadata = bare.write("POST", f"{path}/pods", job["pod"])["metadata"]
    name, uid = metadata["name"], metadata["uid"]
    for manifest in job["dependents"]:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
        manifest["metadata"]["ownerReferences"] = [owner]
        bare.write("POST", f"{path}/{manifest['kind'].lower()}s", manifest)
    bare.write("POST", f"{path}/configmaps", job["record"])
    ungate = [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]
    bare.write("PATCH", f"{path}/pods/{name}", ungate, _JSON_PATCH)


if __name__ == "__main__":
    main()
