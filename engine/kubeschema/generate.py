"""Make the table of types that is shipped anew: `python -m engine.kubeschema.generate`.

`make kubernetes-types` finds its arguments: `swagger.json` of the Go module `k8s.io/kubernetes`
(what `kubectl get --raw /openapi/v2` prints will do as well), and the release.
"""

import json
import sys
from pathlib import Path
from typing import Any

from engine.kubeschema import TABLE
from engine.kubeschema.openapi import table_from_openapi
from engine.kubeschema.table import read_table
from engine.package_data import resource_dir

_POINTERS = "kubernetes/pointers.txt"


def generate(document: Any, release: str) -> str:
    """The text of the file. Errors: OpenAPIError; ValueError for a pointer to no field."""
    pointers = _pointers()
    table = table_from_openapi(document, pointers)
    fields = {(s.name, field) for s in read_table(table).structs() for field in s.fields}
    if gone := sorted(pointers - fields):
        raise ValueError(f"{_POINTERS} names what isn't in the OpenAPI: {gone}")
    head = (
        f"# Types of Kubernetes {release}, made from its OpenAPI by `make kubernetes-types`.\n"
        "# engine/kubeschema/table.py tells how to read it. Kubernetes: Apache License 2.0.\n"
    )
    return head + table


def _pointers() -> set[tuple[str, str]]:
    """(type, field) of what keeps its zero value."""
    lines = (resource_dir("schemas") / _POINTERS).read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {(name, field) for name, *fields in words for field in fields}


if __name__ == "__main__":
    made = generate(json.loads(Path(sys.argv[1]).read_bytes()), sys.argv[2])
    (resource_dir("schemas") / TABLE).write_text(made, encoding="utf-8")
