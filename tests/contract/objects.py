"""The objects that the contract tests send."""

from __future__ import annotations

from tests.support.client import Obj

NOWHERE = {"engine.test/nowhere": "true"}
"""A node selector that no node has: such pods are never started."""


def config_map(name: str, **meta: object) -> Obj:
    data = meta.pop("data", {"key": "value"})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **meta},
        "data": data,
    }


def pod(name: str, **spec: object) -> Obj:
    meta = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": NOWHERE,
            "containers": [{"name": "main", "image": "registry.invalid/tool:1"}],
            **spec,
        },
    }
