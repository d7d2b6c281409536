"""The spec hash: the identity of a revision of a spec; and a digest of each of its fields.

The digests decide nothing. They say, when the hash has changed, where.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from engine.api.yaml_reader import Document, Path

_DIGEST_LENGTH = 8
_NAMESPACE = "metadata.namespace"


def spec_hash(document: Document) -> tuple[str, str]:
    """SHA-256, in hex, over the canonical JSON of the user's own document; and its fields' digests.

    Only `metadata.name`, `metadata.namespace` and `spec` enter, as the user wrote them, without
    the values of secrets. So defaults, configuration, templates and a rotated password never rerun
    a finished job, and the hash, which is public, has nothing of a secret.
    """
    written = _without(document.data, secret_values(document.data["spec"]))
    metadata = written["metadata"]
    namespace = metadata.get("namespace")
    fields = {name: _json(value) for name, value in sorted(written["spec"].items())}
    spec = ",".join(f"{_json(name)}:{text}" for name, text in fields.items())
    name, place = _json(metadata["name"]), _json(namespace)
    whole = _sha256(f'{{"name":{name},"namespace":{place},"spec":{{{spec}}}}}')
    digests = [f"spec.{field}={_sha256(text)[:_DIGEST_LENGTH]}" for field, text in fields.items()]
    if namespace is not None:
        digests.append(f"{_NAMESPACE}={_sha256(place)[:_DIGEST_LENGTH]}")
    return whole, " ".join(digests)


def changed_fields(before: str, now: str) -> tuple[str, ...]:
    """The fields whose digests differ, and those that only one of both has."""
    one, other = (dict(entry.split("=") for entry in digests.split()) for digests in (before, now))
    return tuple(name for name in sorted(one | other) if one.get(name) != other.get(name))


_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def secret_values(spec: Mapping[str, Any]) -> list[Path]:
    """The paths of the values of secrets that are in `spec` itself."""
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
