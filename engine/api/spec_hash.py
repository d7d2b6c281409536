"""The spec hash: the identity of a revision of a spec."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from engine.api.yaml_reader import Document, Path


def spec_hash(document: Document) -> str:
    """SHA-256, in hex, over the canonical JSON of the user's own document.

    Only `metadata.name`, `metadata.namespace` and `spec` enter, as the user wrote them, without
    the values of secrets: defaults, configuration, templates, a conversion between versions and a
    rotated password never rerun a finished job, and a hash that everybody may see tells nothing
    about a secret.
    """
    hidden = {document.written_path(path) for path in _values(document.data["spec"])}
    written = _without(document.written, hidden)
    metadata = written["metadata"]
    identity = {
        "name": metadata["name"],
        "namespace": metadata.get("namespace"),
        "spec": written["spec"],
    }
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _values(spec: dict[str, Any]) -> list[Path]:
    """Where the values of secrets stand."""
    sources: list[tuple[Path, dict[str, Any]]] = [
        (("spec", "secrets", name), source) for name, source in spec.get("secrets", {}).items()
    ]
    sources += [
        (("spec", "registryCredentials", index, "password"), entry["password"])
        for index, entry in enumerate(spec.get("registryCredentials", ()))
        if "password" in entry
    ]
    return [(*path, "value") for path, source in sources if "value" in source]


def _without(data: Any, hidden: Collection[Path]) -> Any:
    """`data` with null at each of the paths; nothing is changed in place."""
    if () in hidden:
        return None
    below: defaultdict[str | int, list[Path]] = defaultdict(list)
    for first, *rest in hidden:
        below[first].append(tuple(rest))
    if isinstance(data, list):
        return [_without(item, below[at]) if at in below else item for at, item in enumerate(data)]
    return {**data, **{key: _without(data[key], paths) for key, paths in below.items()}}
