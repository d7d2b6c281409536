"""EngineConfig: the operator's defaults, limits and features, from the text of engine.yaml."""

from collections.abc import Iterator

from engine.api.model import (
    SECRET_ENV,
    Config,
    Features,
    Limits,
    PruneSettings,
    PullClass,
    PullSettings,
    RecordSettings,
)
from engine.api.pod_patch import field_path
from engine.api.schema import check_document
from engine.api.schema_messages import dotted, show
from engine.api.versions import ENGINE_CONFIG
from engine.api.yaml_reader import Document, read_yaml
from engine.durations import FOREVER, parse_duration
from engine.errors import Diagnostic, InvalidInputError, SourceLocation, in_order
from engine.kubeschema import KubernetesTypes, shipped_types
from engine.podsecurity import Level

_TIMES = (
    *(("limits", name) for name in ("maxTimeout", "maxStartTimeout", "maxTtl", "maxGracePeriod")),
    *(("defaults", name) for name in ("timeout", "startTimeout", "ttl", "ttlLeeway")),
    ("pull", "grace"),
    ("records", "ttl"),
)
_MAY_BE_ZERO = frozenset({"ttlLeeway", "grace", "maxGracePeriod"})


def parse_config(
    text: bytes,
    file: str,
    kubernetes: KubernetesTypes = shipped_types,
    allow_secret_env: tuple[str, ...] = (),
) -> Config:
    """Config of the one EngineConfig document in `text`, and of what the command line allows.

    Errors: InvalidInputError with every problem of the file.
    """
    content = read_yaml(text, file)
    problems = [*content.problems]
    more = content.more
    documents: list[Document] = []
    for document in content.documents:
        checked = check_document(document, kubernetes)
        problems.extend(checked.problems)
        more += checked.more
        if checked.document is not None and checked.ok:
            documents.append(checked.document)
            problems.extend(_bad_times(checked.document))
            problems.extend(_unknown_pod_fields(checked.document, kubernetes))
    if not problems:
        kinds = [document.data["kind"] for document in documents]
        if kinds != [ENGINE_CONFIG]:
            found = ", ".join(kinds) or "nothing"
            problems.append(
                Diagnostic(
                    SourceLocation(file), f"this must hold one {ENGINE_CONFIG}, but holds {found}"
                )
            )
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
        field = dotted(document.written_path([section, name]))
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            yield Diagnostic(where, f"{field}: {error}")
        else:
            if seconds == 0 and name not in _MAY_BE_ZERO:
                yield Diagnostic(where, f"{field} is 0, which leaves a job no time", "leave it out")


def _unknown_pod_fields(document: Document, kubernetes: KubernetesTypes) -> Iterator[Diagnostic]:
    """Fields in `allowPodPatch` that no pod has."""
    paths = (document.data.get("limits") or {}).get("allowPodPatch") or ()
    for index, path in enumerate(paths):
        if field_path(kubernetes, path) is None:
            place = ("limits", "allowPodPatch", index)
            yield Diagnostic(
                document.locate(place),
                f"{dotted(document.written_path(place))}: a pod has no field {show(path)}",
                "name it as kubectl explain does: spec.nodeSelector, spec.containers.resources",
            )


def _build(
    document: Document, kubernetes: KubernetesTypes, allow_secret_env: tuple[str, ...]
) -> Config:
    data = document.data
    limits, features, pull, prune, records = (
        data.get(name) or {} for name in ("limits", "features", "pull", "prune", "records")
    )
    records_ttl = records.get("ttl", "30d")
    return Config(
        defaults=data.get("defaults") or {},
        limits=Limits(
            max_timeout=_optional_duration(limits.get("maxTimeout")),
            max_start_timeout=_optional_duration(limits.get("maxStartTimeout")),
            max_ttl=_optional_duration(limits.get("maxTtl")),
            max_attempts=limits.get("maxAttempts"),
            max_grace_period=_optional_duration(limits.get("maxGracePeriod")),
            allowed_pull_policies=_optional_tuple(limits.get("allowedPullPolicies")),
            allowed_images=_optional_tuple(limits.get("allowedImages")),
            allowed_namespaces=_optional_tuple(limits.get("allowedNamespaces")),
            allowed_service_accounts=_optional_tuple(limits.get("allowedServiceAccounts")),
            allow_pod_patch=_fields(limits.get("allowPodPatch"), kubernetes),
            pod_security=Level(limits.get("podSecurity", Level.PRIVILEGED)),
            max_jobs=limits.get("maxJobs"),
            max_starts=limits.get("maxStarts"),
            max_deletes_per_pass=limits.get("maxDeletesPerPass"),
            allowed_secrets=_optional_tuple(limits.get("allowedSecrets")),
            allowed_secret_env=(*limits.get("allowedSecretEnv", SECRET_ENV), *allow_secret_env),
            allow_secret_files=limits.get("allowSecretFiles", True),
        ),
        features=Features(
            active_deadline_seconds=features.get("activeDeadlineSeconds", True),
            events=features.get("events", True),
        ),
        pull=PullSettings(
            fallback_on=frozenset(pull.get("fallbackOn", PullClass)),
            grace=parse_duration(pull.get("grace", 0)),
        ),
        prune=PruneSettings(
            annotations=tuple(prune.get("annotations", ())),
            keep_failed=prune.get("keepFailed", 0),
        ),
        records=RecordSettings(
            ttl=None if records_ttl == FOREVER else parse_duration(records_ttl),
            history=records.get("history", RecordSettings().history),
        ),
        kubernetes=kubernetes,
        allow_secret_env=allow_secret_env,
        document=document,
    )


def _optional_duration(value: str | int | None) -> float | None:
    return None if value is None else parse_duration(value)


def _fields(
    paths: list[str] | None, kubernetes: KubernetesTypes
) -> tuple[tuple[str, ...], ...] | None:
    return None if paths is None else tuple(field_path(kubernetes, path) or () for path in paths)


def _optional_tuple(value: list[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
