"""The spec hash: the identity of a revision of a spec."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def spec_hash(document: Mapping[str, Any]) -> str:
    """SHA-256, in hex, over the canonical JSON of the user's own document.

    Only `metadata.name`, `metadata.namespace` and `spec` enter, as the user wrote them, without
    the values of secrets: defaults, configuration, templates and a rotated password never rerun a
    finished job, and a hash that everybody may see tells nothing about a secret.
    """
    metadata = document["metadata"]
    identity = {
        "name": metadata["name"],
        "namespace": metadata.get("namespace"),
        "spec": _without_values(document["spec"]),
    }
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_values(spec: Mapping[str, Any]) -> dict[str, Any]:
    cleaned = dict(spec)
    if "secrets" in spec:
        cleaned["secrets"] = {name: _hidden(source) for name, source in spec["secrets"].items()}
    if "registryCredentials" in spec:
        cleaned["registryCredentials"] = [
            {**entry, "password": _hidden(entry["password"])}
            for entry in spec["registryCredentials"]
        ]
    return cleaned


def _hidden(source: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: None if kind == "value" else where for kind, where in source.items()}
