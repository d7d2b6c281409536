"""EngineConfig: the operator's defaults, limits and features, from the text of engine.yaml."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from engine.api import model
from engine.api.kubernetes_schema import SHIPPED, KubernetesSchema
from engine.api.pod_fields import field_path
from engine.api.schema import check_document
from engine.api.schema_messages import dotted, show
from engine.api.versions import ENGINE_CONFIG
from engine.api.yaml_reader import Document, read_yaml
from engine.durations import FOREVER, parse_duration
from engine.errors import Diagnostic, InvalidInputError, SourceLocation, in_order

_TIMES = (
    *product(("limits",), ("maxTimeout", "maxStartTimeout", "maxTtl", "maxGracePeriod")),
    ("limits", "maxProtect"),
    *product(("defaults",), ("timeout", "startTimeout", "ttl", "ttlLeeway")),
    ("pull", "patience"),
    ("records", "ttl"),
)
_MAY_BE_ZERO = frozenset({"ttlLeeway", "patience", "maxGracePeriod"})


def parse_config(
    text: bytes,
    file: str,
    kubernetes: KubernetesSchema = SHIPPED,
    allow_secret_env: tuple[str, ...] = (),
) -> model.Config:
    """Config of the one EngineConfig document in `text`, and of what the command line allows.

    Errors: InvalidInputError with every problem of the file.
    """
    found, unreadable = read_yaml(text, file)
    problems = [*unreadable]
    documents: list[Document] = []
    for document in found:
        refused, _ = check_document(document, kubernetes)
        problems += refused
        if not refused:
            documents.append(document)
            problems += _bad_times(document)
            problems += _unknown_pod_fields(document, kubernetes)
    if not problems:
        kinds = [document.data["kind"] for document in documents]
        if kinds != [ENGINE_CONFIG]:
            held = ", ".join(kinds) or "nothing"
            message = f"this must hold one {ENGINE_CONFIG}, but holds {held}"
            problems.append(Diagnostic(SourceLocation(file), message))
    if problems:
        raise InvalidInputError(in_order(problems))
    return _build(documents[0], kubernetes, allow_secret_env)


def _bad_times(document: Document) -> Iterator[Diagnostic]:
    """Durations that fit the schema's pattern, and mean nothing all the same."""
    for section, name in _TIMES:
        value = (document.data.get(section) or {}).get(name)
        if value is None or (name == "ttl" and value == FOREVER):
            continue
        where = document.locate([section, name])
        field = dotted([section, name])
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            yield Diagnostic(where, f"{field}: {error}")
        else:
            if seconds == 0 and name not in _MAY_BE_ZERO:
                yield Diagnostic(where, f"{field} is 0, which leaves a job no time", "leave it out")


def _unknown_pod_fields(document: Document, kubernetes: KubernetesSchema) -> Iterator[Diagnostic]:
    """Fields in `allowPodPatch` that no pod has."""
    paths = (document.data.get("limits") or {}).get("allowPodPatch") or ()
    for index, path in enumerate(paths):
        if field_path(kubernetes, path) is None:
            place = ("limits", "allowPodPatch", index)
            yield Diagnostic(
                document.locate(place),
                f"{dotted(place)}: a pod has no field {show(path)}",
                "name it as kubectl explain does: spec.nodeSelector, spec.containers.resources",
            )


def _build(
    document: Document, kubernetes: KubernetesSchema, allow_secret_env: tuple[str, ...]
) -> model.Config:
    sections: dict[str, dict[str, Any]] = {}
    for section in ("limits", "features", "pull", "prune", "records"):
        given = document.data.get(section) or {}
        sections[section] = {name: value for name, value in given.items() if value is not None}
    for section, name in _TIMES:
        value = sections.get(section, {}).get(name)
        if value is not None:
            sections[section][name] = None if value == FOREVER else parse_duration(value)
    named = sections["limits"].get("allowPodPatch")
    if named is not None:
        sections["limits"]["allowPodPatch"] = [field_path(kubernetes, path) for path in named]
    limits = convert(sections["limits"], model.Limits)
    return model.Config(
        defaults=document.data.get("defaults") or {},
        limits=replace(limits, allowed_secret_env=(*limits.allowed_secret_env, *allow_secret_env)),
        features=convert(sections["features"], model.Features),
        pull=convert(sections["pull"], model.PullSettings),
        prune_annotations=tuple(sections["prune"].get("annotations", ())),
        records=convert(sections["records"], model.RecordSettings),
        kubernetes=kubernetes,
        allow_secret_env=allow_secret_env,
        document=document,
    )
