"""The effective spec of a job as one document, and where each of its values was written."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from operator import getitem
from typing import Any

from engine.api.checks import allowed_policies, policy_list
from engine.api.effective import TIME_LIMITS, EffectiveSpec, has_value
from engine.api.model import Job
from engine.api.spec_hash import secret_values
from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_DEFAULTS, JOB_SPEC
from engine.api.yaml_reader import Path
from engine.durations import format_duration
from engine.errors import SourceLocation
from engine.kubeschema.defaults import allowed_pull_policy

_LEEWAY = "ttlLeeway"
_SUMMANDS = ("startTimeout", "timeout", _LEEWAY)
_ALLOWED_POLICIES = "limits.allowedPullPolicies"
_NAMESPACE: Path = ("metadata", "namespace")


class Writer(StrEnum):
    """Who can say a value."""

    SPEC = JOB_SPEC
    DEFAULTS = JOB_DEFAULTS
    CONFIG = ENGINE_CONFIG
    FLAG = "--namespace"
    BUILT_IN = "built-in default"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from."""

    writer: Writer
    """Who says it."""
    where: SourceLocation | None = None
    """The place of the value; None for what stands in no file."""
    rule: str = ""
    """What made the value, a limit or a sum; "" for one that was written."""
    before: "tuple[Any, Origin] | None" = None
    """What a limit put the value in place of, and where that comes from."""


@dataclass(frozen=True, slots=True)
class EffectiveDocument:
    """A JobSpec that means the same without any defaults."""

    data: dict[str, Any]
    """Plain data; without a namespace, if only the context has one."""
    origins: Mapping[Path, Origin]
    """By the paths of its values; a list is one value unless there are mappings in it."""

    def value_at(self, path: Path) -> Any:
        """The value at one of the paths."""
        return _at(self.data, path)


def effective_document(job: Job, namespace: str, mask: str = "") -> EffectiveDocument:
    """All that holds for `job`, which has to know its origin; `namespace` is that of -n.

    `mask` stands for the values of secrets, unless it is empty. Guarantees: pure.
    """
    if job.origin is None:
        raise ValueError("the configuration has to ask for origins")
    effective = _with_ttl(job.origin)
    data = _document(job, effective)
    origins = _origins(effective, data, namespace)
    for path, value, limit in _cuts(effective):
        before = _at(data, path), origins[path]
        where = _in_config(effective, *limit.split("."))
        origins[path] = Origin(Writer.CONFIG, where, limit, before)
        _put(data, path, value)
    for path, policy in _chosen_policies(effective):
        where = _in_config(effective, *_ALLOWED_POLICIES.split("."))
        origins[path] = Origin(Writer.CONFIG, where, _ALLOWED_POLICIES)
        _put(data, path, policy)
    for path in secret_values(data["spec"]) if mask else ():
        _put(data, path, mask)
    return EffectiveDocument(data, origins)


def _with_ttl(effective: EffectiveSpec) -> EffectiveSpec:
    """The leeway has no meaning beyond the default ttl, which no spec has to compute."""
    ttl = format_duration(sum(effective.seconds(name) or 0 for name in _SUMMANDS))
    spec = {name: value for name, value in effective.spec.items() if name != _LEEWAY}
    return replace(effective, spec={**spec, "ttl": effective.spec.get("ttl", ttl)})


def _document(job: Job, effective: EffectiveSpec) -> dict[str, Any]:
    """What the job itself says comes first."""
    given = (
        ("name", job.name),
        ("namespace", effective.namespace),
        ("labels", job.labels),
        ("annotations", job.annotations),
    )
    own = {name: effective.spec[name] for name in effective.own.data["spec"]}
    return copy.deepcopy(
        {
            "apiVersion": API_VERSION,
            "kind": JOB_SPEC,
            "metadata": {name: value for name, value in given if value},
            "spec": {**own, **effective.spec},
        }
    )


def _origins(effective: EffectiveSpec, data: Any, namespace: str) -> dict[Path, Origin]:
    """Document by document: places are found by reading a text again."""
    paths = [path for top in ("metadata", "spec") for path in _paths(data[top], (top,))]
    writers = {path: effective.writer(path) for path in paths}
    origins: dict[Path, Origin] = {}
    for document in effective.layers:
        for path in paths:
            if writers[path] is document:
                origins[path] = Origin(Writer(document.data["kind"]), document.locate(path))
    defaults = effective.config.defaults
    for path in (path for path in paths if writers[path] is None):
        is_sum = path[1:] == ("ttl",) and "ttl" not in defaults
        rule = " + ".join(_SUMMANDS) if is_sum else ""
        wanted = (_LEEWAY,) if is_sum else path[1:]
        if has_value(defaults, wanted):
            where = _in_config(effective, "defaults", *wanted)
            origins[path] = Origin(Writer.CONFIG, where, rule)
        else:
            origins[path] = Origin(Writer.BUILT_IN, rule=rule)
    if namespace and writers.get(_NAMESPACE) is not effective.own:
        origins[_NAMESPACE] = Origin(Writer.FLAG)
    return {path: origins[path] for path in paths}


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
    """(path, what it is cut to, limit) of each value that is beyond what the operator allows."""
    for time in effective.times():
        wanted, cap = effective.wanted_seconds(*time), effective.longest(time[0])
        if wanted is not None and cap is not None and wanted > cap:
            yield ("spec", *time), format_duration(cap), TIME_LIMITS[time[0]]
    for _, path, container in effective.containers():
        wanted_list = policy_list(container.get("pullPolicy"))
        if wanted_list and (rest := allowed_policies(effective, container)) != wanted_list:
            yield (*path, "pullPolicy"), [*rest], _ALLOWED_POLICIES


def _chosen_policies(effective: EffectiveSpec) -> Iterator[tuple[Path, str]]:
    """(path, policy) of each container that is given one because only some are allowed."""
    allowed = effective.config.limits.allowed_pull_policies
    pod = effective.spec.get("podPatch", {}).get("spec") or {}
    patches = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    patched = {patch.get("name") for patch in patches if patch.get("imagePullPolicy")}
    for name, path, container in effective.containers() if allowed else ():
        given = container.get("pullPolicy", effective.spec.get("pullPolicy"))
        if allowed and given is None and name not in patched:
            yield (*path, "pullPolicy"), allowed_pull_policy(container["image"], allowed)


def _in_config(effective: EffectiveSpec, *path: str | int) -> SourceLocation | None:
    document = effective.config.document
    return document.locate(path) if document is not None else None


def _at(data: Any, path: Path) -> Any:
    return reduce(getitem, path, data)


def _put(data: Any, path: Path, value: Any) -> None:
    _at(data, path[:-1])[path[-1]] = value
