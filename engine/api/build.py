"""From one JobSpec and the defaults that hold for it to a job: merge, check, build."""

import math
from collections.abc import Iterator, Sequence

from engine.api import model
from engine.api.checks import check_object, check_spec, pod_patch_runs_to_completion
from engine.api.effective import AFTER_FINISHED, FROM_SECRET, EffectiveSpec, effective_spec
from engine.api.parse import SpecText
from engine.api.spec_hash import defaulted_fields, secret_sources, spec_hash
from engine.api.yaml_reader import Document, Path
from engine.errors import Diagnostic, Severity


def build_job(
    document: Document,
    text: SpecText,
    layers: Sequence[Document],
    config: model.Config,
    namespace: str = "",
) -> tuple[model.Job | None, tuple[Diagnostic, ...]]:
    """The job of `document` in `text`, None if it has or had an error; `layers` are its defaults,
    nearest first.

    `namespace` is for a spec that names none, and goes before those of the defaults.
    Guarantees: pure. Errors are collected, never raised.
    """
    effective = effective_spec(document, layers, config, namespace)
    problems = check_spec(effective)
    if text.object is not None:
        problems += tuple(check_object(effective))
    if document.mended:
        return None, (*problems, *pod_patch_runs_to_completion(effective))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, problems
    spec, metadata, limits = effective.spec, effective.metadata, config.limits
    whole, digests = spec_hash(document)
    seconds = {path: time.seconds or 0 for path, time in effective.times.items()}
    timeout, start_timeout = seconds[("timeout",)], seconds[("startTimeout",)]
    longest = start_timeout + timeout + seconds.get(("ttlLeeway",), 0)
    secrets = (
        model.SecretRef(_variable(path), effective.place(path), *next(iter(source.items())))
        for path, source in secret_sources(spec)
        if FROM_SECRET not in source
    )
    retry = spec.get("retry", {})
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
        secrets=tuple(secrets),
        retry=model.Retry(retry.get("max", 0), frozenset(retry.get("on", model.RETRIED))),
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


def _variable(path: Path) -> str:
    return str(path[-1]) if path[1] == "secrets" else ""


def _dependencies(effective: EffectiveSpec) -> Iterator[model.Dependency]:
    for index, one in enumerate(effective.spec.get("dependsOn", ())):
        place = effective.place(("spec", "dependsOn", index))
        if isinstance(one, str):
            yield model.Dependency(one, place)
        else:
            yield model.Dependency(one["name"], place, one.get("on") == "finished")
