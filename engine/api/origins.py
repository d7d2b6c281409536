"""The effective spec of a job as one document, and the place of each of its values."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from engine.api.effective import TIME_LIMITS, EffectiveSpec, has_value
from engine.api.model import Job
from engine.api.spec_hash import put_secrets
from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_SPEC
from engine.api.yaml_reader import Path
from engine.durations import format_duration
from engine.errors import SourceLocation

BUILT_IN = "built-in default"
_NAMESPACE: Path = ("metadata", "namespace")
_ALLOWED_POLICIES = "limits.allowedPullPolicies"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from."""

    writer: str
    """The kind of the document that has it, a flag, or BUILT_IN."""
    where: SourceLocation | None = None
    """None for what is in no file."""
    rule: str = ""
    """The limit that cut the value, or the sum that it is; "" for one that was written."""


@dataclass(frozen=True, slots=True)
class EffectiveDocument:
    """A JobSpec that means the same without any defaults."""

    data: dict[str, Any]
    """Without a namespace, if only the context has one."""
    origins: Mapping[Path, Origin]
    """By the paths of its values; a list is one value unless it has mappings."""


def effective_document(job: Job, namespace: str, mask: str = "") -> EffectiveDocument:
    """All that holds for `job`, which has to know its origin; `namespace` is that of -n.

    `mask` replaces the values of secrets, unless it is empty. Guarantees: pure.
    """
    effective = job.origin
    if effective is None:
        raise ValueError("the configuration has to ask for origins")
    given = (
        ("name", job.name),
        ("namespace", effective.metadata["namespace"]),
        ("labels", job.labels),
        ("annotations", job.annotations),
    )
    # What the job itself says comes first; the leeway has no meaning beyond the default ttl.
    own = {name: effective.spec[name] for name in effective.layers[0].data["spec"]}
    spec = {**own, **effective.spec, "ttl": effective.spec.get("ttl", format_duration(job.ttl))}
    del spec["ttlLeeway"]
    data: dict[str, Any] = copy.deepcopy(
        {
            "apiVersion": API_VERSION,
            "kind": JOB_SPEC,
            "metadata": {name: value for name, value in given if value},
            "spec": spec,
        }
    )
    origins = _origins(effective, data)
    if namespace and "namespace" not in effective.layers[0].data["metadata"]:
        origins[_NAMESPACE] = Origin("--namespace")
    if "ttl" not in effective.spec:
        origins["spec", "ttl"] = Origin(BUILT_IN, rule="startTimeout + timeout + ttlLeeway")
    for path, value, limit in _cuts(effective):
        origins[path] = Origin(ENGINE_CONFIG, _in_config(effective, *limit.split(".")), limit)
        parent: Any = data
        reduce(getitem, path[:-1], parent)[path[-1]] = value
    return EffectiveDocument(put_secrets(data, mask) if mask else data, origins)


def _origins(effective: EffectiveSpec, data: dict[str, Any]) -> dict[Path, Origin]:
    """Document by document, for the place of a value is found by reading its text again."""
    paths = [path for top in ("metadata", "spec") for path in _paths(data[top], (top,))]
    origins = {path: Origin(BUILT_IN) for path in paths}
    writers = {path: effective.writer(path) for path in paths}
    for document in effective.layers:
        for path in (path for path in paths if writers[path] is document):
            origins[path] = Origin(document.data["kind"], document.locate(path))
    for path in (path for path in paths if writers[path] is None):
        if has_value(effective.config.defaults, path[1:]):
            where = _in_config(effective, "defaults", *path[1:])
            origins[path] = Origin(ENGINE_CONFIG, where)
    return origins


def _paths(data: Any, path: Path) -> Iterator[Path]:
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _paths(value, (*path, key))
    elif isinstance(data, list) and any(isinstance(item, dict) for item in data):
        for index, item in enumerate(data):
            yield from _paths(item, (*path, index))
    else:
        yield path


def _cuts(effective: EffectiveSpec) -> Iterator[tuple[Path, Any, str]]:
    """(path, new value, limit) of each value that is beyond what the operator allows."""
    for path, time in effective.times.items():
        if time.wanted != time.seconds and time.longest is not None:
            yield ("spec", *path), format_duration(time.longest), TIME_LIMITS[path[0]]
    for one in effective.containers:
        if "pullPolicy" in one.spec and one.policies != one.wanted:
            yield (*one.path, "pullPolicy"), [*one.policies], _ALLOWED_POLICIES


def _in_config(effective: EffectiveSpec, *path: str | int) -> SourceLocation | None:
    document = effective.config.document
    return document.locate(path) if document is not None else None
