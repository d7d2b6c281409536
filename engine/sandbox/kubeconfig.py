"""A kubeconfig for the sandbox, as kubectl and the Python client read it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sandbox.values import Obj


def kubeconfig(url: str, user: str, namespace: str) -> Obj:
    """One cluster, one user, one context, all named ``sandbox``. The token is the user's name."""
    context = {"cluster": "sandbox", "user": "sandbox", "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": {"server": url}}],
        "users": [{"name": "sandbox", "user": {"token": user}}],
        "contexts": [{"name": "sandbox", "context": context}],
        "current-context": "sandbox",
    }


def write_kubeconfig(path: str | Path, config: Obj) -> Path:
    """Write it as JSON (which is YAML), readable by its owner only."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    return target
