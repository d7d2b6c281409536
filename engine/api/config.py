"""EngineConfig: the operator's defaults, limits and features, from the text of engine.yaml."""

import re
from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from typing import Any

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
_DURATIONS = frozenset(map(itemgetter(1), _TIMES))
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
    more = 0
    documents: list[Document] = []
    for document in found:
        refused, others, _ = check_document(document, kubernetes)
        problems += refused
        more += others
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
        raise InvalidInputError(in_order(problems, {file: more}))
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
    data = document.data

    def fields(section: str) -> dict[str, Any]:
        """Of a section, by the model's names, which are the file's in Python's spelling."""
        return {
            re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): _value(name, value)
            for name, value in (data.get(section) or {}).items()
            if value is not None
        }

    limits = fields("limits")
    limits["allowed_secret_env"] = (
        *limits.get("allowed_secret_env", model.SECRET_ENV),
        *allow_secret_env,
    )
    if "allow_pod_patch" in limits:
        limits["allow_pod_patch"] = tuple(
            field_path(kubernetes, path) or () for path in limits["allow_pod_patch"]
        )
    pull = fields("pull")
    if "fallback_on" in pull:
        pull["fallback_on"] = frozenset(pull["fallback_on"])
    return model.Config(
        defaults=data.get("defaults") or {},
        limits=model.Limits(**limits),
        features=model.Features(**fields("features")),
        pull=model.PullSettings(**pull),
        prune_annotations=fields("prune").get("annotations", ()),
        records=model.RecordSettings(**fields("records")),
        kubernetes=kubernetes,
        allow_secret_env=allow_secret_env,
        document=document,
    )


def _value(name: str, value: Any) -> Any:
    if name in _DURATIONS:
        return None if value == FOREVER else parse_duration(value)
    return tuple(value) if isinstance(value, list) else value
