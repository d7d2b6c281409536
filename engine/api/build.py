"""From one JobSpec and the defaults that hold for it to a job: merge, check, build."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.api.checks import check_spec
from engine.api.effective import (
    AFTER_FINISHED,
    FROM_SECRET,
    EffectiveSpec,
    effective_spec,
    merge_mappings,
)
from engine.api.model import (
    Config,
    Job,
    Limits,
    OnChange,
    RegistryCredential,
    Retry,
    SecretKey,
    SecretRef,
)
from engine.api.parse import SpecText
from engine.api.spec_hash import spec_hash
from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, Severity, SourceLocation


def build_job(
    document: Document,
    text: SpecText,
    layers: Sequence[Document],
    config: Config,
    namespace: str = "",
) -> tuple[Job | None, tuple[Diagnostic, ...]]:
    """The job of `document` in `text`, None if it has an error; `layers` are its defaults,
    nearest first.

    `namespace` is for a spec that names none, and goes before those of the defaults.
    Guarantees: pure. Errors are collected, never raised.
    """
    effective = effective_spec(document, layers, config, namespace)
    problems = check_spec(effective)
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, problems
    return _build(effective, text), problems


def _build(effective: EffectiveSpec, text: SpecText) -> Job:
    spec, config, document = effective.spec, effective.config, effective.layers[0]
    limits = config.limits
    metadata = document.data["metadata"]
    whole, digests = spec_hash(document)
    seconds = {path: time.seconds or 0 for path, time in effective.times.items()}
    timeout, start_timeout, leeway, ttl = (
        seconds.get((name,), 0) for name in ("timeout", "startTimeout", "ttlLeeway", "ttl")
    )
    if "ttl" not in spec:
        ttl = min(start_timeout + timeout + leeway, limits.max_ttl or math.inf)
    secrets: dict[str, SecretRef] = {}
    secret_keys: dict[str, SecretKey] = {}
    for name, source in spec.get("secrets", {}).items():
        if FROM_SECRET in source:
            secret_keys[name] = SecretKey(**source[FROM_SECRET])
        else:
            secrets[name] = _secret_source(source, effective.place(("spec", "secrets", name)))
    logins = [*enumerate(spec.get("registryCredentials", ()))]
    return Job(
        name=metadata["name"],
        namespace=effective.namespace,
        names_namespace="namespace" in metadata,
        labels=_metadata(effective, "labels"),
        annotations=_metadata(effective, "annotations"),
        spec=spec,
        timeout=timeout,
        has_active_deadline=config.features.active_deadline_seconds,
        start_timeout=start_timeout,
        ttl=ttl,
        ttl_after_finished={
            path[1]: value for path, value in seconds.items() if path[0] == AFTER_FINISHED
        },
        policies={one.name: one.policies for one in effective.containers if one.policies},
        secrets=secrets,
        secret_keys=secret_keys,
        credentials=tuple(
            RegistryCredential(
                entry["registry"],
                entry["username"],
                _secret_source(
                    entry["password"],
                    effective.place(("spec", "registryCredentials", index, "password")),
                ),
            )
            for index, entry in logins
            if FROM_SECRET not in entry
        ),
        pull_secrets=tuple(
            entry[FROM_SECRET]["name"] for _, entry in logins if FROM_SECRET in entry
        ),
        retry=_retry(spec.get("retry", {})),
        on_change=OnChange(spec["onChange"]),
        spec_hash=whole,
        spec_fields=digests,
        place=document.place,
        folder=text.folder,
        root=text.root or text.folder,
        origin=effective if config.keep_origins or limits != Limits() else None,
    )


def _metadata(effective: EffectiveSpec, field: str) -> dict[str, str]:
    merged: dict[str, Any] = {}
    for document in reversed(effective.layers):
        merged = merge_mappings(merged, document.data.get("metadata", {}).get(field, {}))
    return merged


def _secret_source(source: Mapping[str, str], place: SourceLocation) -> SecretRef:
    return SecretRef(place, source.get("value"), source.get("fromEnv"), source.get("fromFile"))


def _retry(value: Mapping[str, Any]) -> Retry:
    return Retry(value.get("max", 0), frozenset(value["on"]) if "on" in value else Retry().on)
