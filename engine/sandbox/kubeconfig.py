"""A kubeconfig for the sandbox, as kubectl and the Python client read it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.sandbox.errors import SandboxError

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

_LOOPBACK = "http://127.0.0.1:"


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
    """Write it as JSON (which is YAML), readable by its owner only.

    Guarantees: what another sandbox wrote is replaced, and nothing else.
    Errors: SandboxError where something else is there, or the file can't be written.
    """
    target = Path(path)
    text = json.dumps(config, indent=2) + "\n"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if not _is_own(target):
                raise SandboxError(
                    "this file is not a sandbox's kubeconfig; it is left as it is",
                    where=str(target),
                    hint="name a file that isn't there yet",
                ) from None
            descriptor = os.open(target, os.O_WRONLY | os.O_TRUNC)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        words = f"can't be written: {error.strerror}"
        raise SandboxError(words, where=str(target)) from None
    return target


def _is_own(path: Path) -> bool:
    """Whether the file is what a sandbox writes, or that as kubectl writes it anew: in YAML, with
    `preferences`, and with the namespace that `kubectl config set-context` was given.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415 - slow to import
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    if not path.is_file():
        return False
    try:
        found = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        found.pop("preferences", None)
        url = found["clusters"][0]["cluster"]["server"]
        user = found["users"][0]["user"]["token"]
        namespace = found["contexts"][0]["context"].setdefault("namespace", "default")
    except (YAMLError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return str(url).startswith(_LOOPBACK) and bool(found == kubeconfig(url, user, namespace))
