"""The types of what the chart makes: those that the engine ships, and those that only we need.

`python -m tests.deploy.kubernetes_types swagger.json` makes the second half anew; `make
kubernetes-types` does it along with the first.
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from engine.kubeschema import TABLE
from engine.kubeschema.model import Schema
from engine.kubeschema.openapi import table_from_openapi
from engine.kubeschema.table import read_table
from engine.package_data import resource_dir

_OURS = Path(__file__).with_name("types.txt")
_KINDS = {
    "apps.v1": ["Deployment"],
    "batch.v1": ["CronJob"],
    "core.v1": ["Service"],
    "networking.v1": ["NetworkPolicy"],
    "policy.v1": ["PodDisruptionBudget"],
    "rbac.v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
}
_HEAD = (
    "# As schemas/kubernetes/types.txt, which has what is missing here. `make kubernetes-types`.\n"
)


@cache
def deployed_types() -> Schema:
    return read_table(_shipped() + _OURS.read_text())


def _shipped() -> str:
    return (resource_dir("schemas") / TABLE).read_text()


def _make(swagger: Path) -> str:
    kinds = [f"io.k8s.api.{group}.{kind}" for group, names in _KINDS.items() for kind in names]
    text = table_from_openapi(json.loads(swagger.read_bytes()), kinds=kinds)
    known = {struct for _, struct, _ in _structs(_shipped())}
    lines: list[str] = []
    for package, struct, fields in _structs(text):
        if struct not in known:
            heading = [] if package in lines else [package]
            lines += [*heading, *fields]
    return _HEAD + "\n".join(lines) + "\n"


def _structs(table: str) -> Iterator[tuple[str, tuple[str, str], list[str]]]:
    """Of each: its package's line, its package and name, and its lines."""
    package, lines = "", table.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("["):
            package = line
        elif line and line[0] not in " #":
            end = number + 1
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            yield package, (package[1:-1].split()[0], line), lines[number:end]


if __name__ == "__main__":
    _OURS.write_text(_make(Path(sys.argv[1])))
