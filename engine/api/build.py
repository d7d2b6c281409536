"""From one JobSpec and the defaults that hold for it to a job: merge, check, build."""

import math
from collections.abc import Iterator, Mapping, Sequence

from engine.api import model
from engine.api.checks import check_object, check_spec
from engine.api.effective import AFTER_FINISHED, FROM_SECRET, EffectiveSpec, effective_spec
from engine.api.parse import SpecText
from engine.api.spec_hash import defaulted_fields, spec_hash
from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, Severity, SourceLocation


def build_job(
    document: Document,
    text: SpecText,
    layers: Sequence[Document],
    config: model.Config,
    namespace: str = "",
) -> tuple[model.Job | None, tuple[Diagnostic, ...]]:
    """The job of `document` in `text`, None if it has an error; `layers` are its defaults,
    nearest first.

    `namespace` is for a spec that names none, and goes before those of the defaults.
    Guarantees: pure. Errors are collected, never raised.
    """
    effective = effective_spec(document, layers, config, namespace)
    problems = check_spec(effective)
    if text.object is not None:
        problems += tuple(check_object(effective))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, problems
    spec, metadata, limits = effective.spec, effective.metadata, config.limits
    whole, digests = spec_hash(document)
    seconds = {path: time.seconds or 0 for path, time in effective.times.items()}
    timeout, start_timeout = seconds[("timeout",)], seconds[("startTimeout",)]
    longest = start_timeout + timeout + seconds.get(("ttlLeeway",), 0)
    secrets: dict[str, model.SecretRef] = {}
    secret_keys: dict[str, model.SecretKey] = {}
    credentials: list[model.RegistryCredential] = []
    pull_secrets: list[str] = []
    for name, source in spec.get("secrets", {}).items():
        if FROM_SECRET in source:
            secret_keys[name] = model.SecretKey(**source[FROM_SECRET])
        else:
            secrets[name] = _secret_source(source, effective.place(("spec", "secrets", name)))
    for index, entry in enumerate(spec.get("registryCredentials", ())):
        if FROM_SECRET in entry:
            pull_secrets.append(entry[FROM_SECRET]["name"])
        else:
            place = effective.place(("spec", "registryCredentials", index, "password"))
            password = _secret_source(entry["password"], place)
            credentials.append(
                model.RegistryCredential(entry["registry"], entry["username"], password)
            )
    retry = dict(spec.get("retry", {}))
    if "on" in retry:
        retry["on"] = frozenset(retry["on"])
    job = model.Job(
        name=metadata["name"],
        namespace=metadata["namespace"],
        names_namespace="namespace" in document.data["metadata"],
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        spec=spec,
        timeout=timeout,
        features=config.features,
        start_timeout=start_timeout,
        ttl=seconds.get(("ttl",), min(longest, limits.max_ttl or math.inf)),
        ttl_after_finished={
            path[1]: value for path, value in seconds.items() if path[0] == AFTER_FINISHED
        },
        policies={one.name: one.policies for one in effective.containers if one.policies},
        secrets=secrets,
        secret_keys=secret_keys,
        credentials=tuple(credentials),
        pull_secrets=tuple(pull_secrets),
        retry=model.Retry(**retry),
        on_change=model.OnChange(spec["onChange"]),
        matrix=document.matrix,
        depends_on=tuple(_dependencies(effective)),
        spec_hash=whole,
        spec_fields=digests,
        defaulted_fields=(
            defaulted_fields(document.data["spec"], spec) if layers or config.defaults else ""
        ),
        place=document.place,
        folder=text.folder,
        root=text.root or text.folder,
        object=text.object,
        origin=effective if config.keep_origins or limits != model.Limits() else None,
    )
    return job, problems


def _secret_source(source: Mapping[str, str], place: SourceLocation) -> model.SecretRef:
    return model.SecretRef(
        place, source.get("value"), source.get("fromEnv"), source.get("fromFile")
    )


def _dependencies(effective: EffectiveSpec) -> Iterator[model.Dependency]:
    for index, one in enumerate(effective.spec.get("dependsOn", ())):
        place = effective.place(("spec", "dependsOn", index))
        if isinstance(one, str):
            yield model.Dependency(one, place)
        else:
            yield model.Dependency(one["name"], place, one.get("on") == "finished")
