"""The spec hash: the identity of a revision of a spec; and a digest of each of its fields.

The digests decide nothing. They say, when the hash has changed, where.
"""

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any

from engine.api.yaml_reader import Document, Path

_DIGEST_LENGTH = 8


def spec_hash(document: Document) -> tuple[str, str]:
    """SHA-256, in hex, over the canonical JSON of the user's own document; and its fields' digests.

    Only `metadata.name`, `metadata.namespace` and `spec` enter, as the user wrote them, without
    the values of secrets. So defaults, configuration, templates and a rotated password never rerun
    a finished job, and the hash, which is public, has nothing of a secret.
    """
    written = put_secrets(document.data, None)
    metadata = written["metadata"]
    namespace = metadata.get("namespace")
    kept = {"name": metadata["name"], "namespace": namespace, "spec": written["spec"]}
    digests = []
    for field, value in sorted(written["spec"].items()):
        digests.append(f"spec.{field}={_sha256(value)[:_DIGEST_LENGTH]}")
    if namespace is not None:
        digests.append(f"metadata.namespace={_sha256(namespace)[:_DIGEST_LENGTH]}")
    return _sha256(kept), " ".join(digests)


def changed_fields(before: str, now: str) -> tuple[str, ...]:
    """The fields whose digests differ, and those that only one of both has."""
    one, other = (dict(entry.split("=") for entry in digests.split()) for digests in (before, now))
    return tuple(name for name in sorted(one | other) if one.get(name) != other.get(name))


_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def _sha256(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()


def secret_sources(spec: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """(path, source) of each secret of `spec`."""
    for name, source in spec.get("secrets", {}).items():
        yield ("spec", "secrets", name), source
    for index, entry in enumerate(spec.get("registryCredentials", ())):
        if "password" in entry:
            yield ("spec", "registryCredentials", index, "password"), entry["password"]


def put_secrets(data: dict[str, Any], put: Any) -> dict[str, Any]:
    """A document with `put` in place of each secret's value that is in it."""
    made: Any = data
    for path, source in secret_sources(data["spec"]):
        if "value" in source:
            made = copy.deepcopy(data) if made is data else made
            reduce(getitem, path, made)["value"] = put
    return dict(made)
