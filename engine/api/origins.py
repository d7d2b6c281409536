"""Where each value of the effective spec of a job comes from."""

from collections.abc import Iterator
from functools import reduce
from operator import getitem
from typing import Any

from engine.api.effective import TIME_LIMITS, EffectiveSpec, has_value
from engine.api.model import Job
from engine.api.schema_messages import dotted
from engine.api.spec_hash import put_secrets
from engine.api.versions import ENGINE_CONFIG, JOB_SPEC
from engine.api.yaml_reader import Path
from engine.durations import format_duration

BUILT_IN = "built-in default"
_NAMESPACE = ("metadata", "namespace")
_TTL = ("spec", "ttl")


def origins(job: Job, namespace: str) -> Iterator[tuple[str, Any, str]]:
    """(field, value, place) of all that holds for `job`, which has to know its origin.

    `namespace` is that of -n. Values of secrets are masked. A list is one value unless it has
    mappings. Guarantees: pure.
    """
    effective = job.origin
    if effective is None:
        raise ValueError("the configuration has to ask for origins")
    document: Any = {"metadata": {**effective.metadata, "name": job.name}, "spec": effective.spec}
    document = put_secrets(document, "***")
    cuts = dict(_cuts(effective))
    for path in sorted(_paths(document, ()), key=lambda path: path[0]):
        value, place = cuts.get(path) or (reduce(getitem, path, document), _place(effective, path))
        if path == _NAMESPACE and namespace and not job.names_namespace:
            place = "--namespace"
        if value != "" or path != _NAMESPACE:
            yield dotted(path), value, place
    if "ttl" not in effective.spec:
        words = f"{BUILT_IN} (startTimeout + timeout + ttlLeeway)"
        yield dotted(_TTL), format_duration(job.ttl), words


def _paths(data: Any, path: Path) -> Iterator[Path]:
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _paths(value, (*path, key))
    elif isinstance(data, list) and any(isinstance(item, dict) for item in data):
        for index, item in enumerate(data):
            yield from _paths(item, (*path, index))
    else:
        yield path


def _place(effective: EffectiveSpec, path: Path) -> str:
    writer = effective.writer(path)
    if writer is not None:
        kind = writer.data["kind"]
        return f"{writer.locate(path)}{f' ({kind})' if kind != JOB_SPEC else ''}"
    if has_value(effective.config.defaults, path[1:]):
        return _in_config(effective, ENGINE_CONFIG, "defaults", *path[1:])
    return BUILT_IN


def _cuts(effective: EffectiveSpec) -> Iterator[tuple[Path, tuple[Any, str]]]:
    """By path the value, and the limit, of all that is beyond what the operator allows."""
    for path, time in effective.times.items():
        if time.wanted != time.seconds and time.longest is not None:
            limit = TIME_LIMITS[path[0]]
            value = format_duration(time.longest)
            yield (
                ("spec", *path),
                (value, _in_config(effective, f"limits.{limit}", "limits", limit)),
            )
    for one in effective.containers:
        if "pullPolicy" in one.spec and one.policies != one.wanted:
            limit = "allowedPullPolicies"
            place = _in_config(effective, f"limits.{limit}", "limits", limit)
            yield (*one.path, "pullPolicy"), ([*one.policies], place)


def _in_config(effective: EffectiveSpec, rule: str, *path: str | int) -> str:
    document = effective.config.document
    return f"{document.locate(path)} ({rule})" if document is not None else rule
