"""The run hash: the identity of what runs; and digests of fields, which say where two differ."""

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any

from engine.api.effective import BUILT_IN
from engine.api.field_kinds import FieldKind, field_kind, fields_of
from engine.api.yaml_reader import Document, Path

_DIGEST_LENGTH = 8


def spec_hash(document: Document) -> tuple[str, str]:
    """SHA-256, in hex, over the canonical JSON of what runs; and digests of what runs and how it is
    tried, by field.

    Only `metadata.name`, `metadata.namespace` and the fields that say what runs enter, as the user
    wrote them, without the engine's own defaults and the values of secrets. So JobDefaults,
    configuration, templates and a rotated password never rerun a finished job, and the hash, which
    is public, has nothing of a secret.
    """
    written = put_secrets(document.data, None)
    metadata = written["metadata"]
    namespace = metadata.get("namespace")
    runs, digests = {}, []
    for field, kind, value in sorted(fields_of(written["spec"])):
        if kind is FieldKind.RUNS:
            runs[field.removeprefix("spec.")] = value
        if kind is not FieldKind.KEPT:
            digests.append(f"{field}={_sha256(value)[:_DIGEST_LENGTH]}")
    # Always there: a record without any digest doesn't say what it ran.
    digests.append(f"metadata.namespace={_sha256(namespace)[:_DIGEST_LENGTH]}")
    kept = {"name": metadata["name"], "namespace": namespace, "spec": runs}
    return _sha256(kept), " ".join(digests)


def defaulted_fields(own: Mapping[str, Any], effective: Mapping[str, Any]) -> str:
    """Digests of the fields that say what runs and aren't as the spec's `own` fields have them.

    With the run hash they say all that runs: two jobs with the same hash differ in them alone.
    """
    others = {
        name: value
        for name, value in effective.items()
        if own.get(name) != value and BUILT_IN.get(name) != value
    }
    if "serviceAccountName" in effective:  # it says which fields are no more than a default
        others["serviceAccountName"] = effective["serviceAccountName"]
    return " ".join(
        f"{field}={_sha256(value)[:_DIGEST_LENGTH]}"
        for field, kind, value in sorted(fields_of(put_secrets({"spec": others}, None)["spec"]))
        if kind is FieldKind.RUNS
    )


def changed_fields(before: str, now: str, kind: FieldKind = FieldKind.RUNS) -> tuple[str, ...]:
    """The fields of this kind whose digests differ, and those that only one of both has."""
    one, other = (dict(entry.split("=") for entry in digests.split()) for digests in (before, now))
    return tuple(
        name
        for name in sorted(one | other)
        if one.get(name) != other.get(name) and field_kind(name.split(".")) is kind
    )


def runs_digest(digests: str) -> str:
    """Those of the fields that say what runs."""
    kinds = ((entry, field_kind(entry.partition("=")[0].split("."))) for entry in digests.split())
    return " ".join(entry for entry, kind in kinds if kind is FieldKind.RUNS)


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
