"""From the texts of a source to its jobs: read, validate, merge defaults, check, hash."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from engine.durations import parse_duration
from engine.errors import InvalidInputError, Place, Problem, Severity
from engine.spec.checks import check_spec, matches_any, policy_list
from engine.spec.defaults import BUILT_IN, merge_mappings, merge_specs
from engine.spec.digest import spec_hash
from engine.spec.effective import EffectiveSpec
from engine.spec.model import (
    Config,
    Job,
    Limits,
    LoadedJobs,
    OnChange,
    RegistryCredential,
    Retry,
    SecretSource,
)
from engine.spec.schema import ENGINE_CONFIG, JOB_DEFAULTS, JOB_SPEC, check_document
from engine.spec.yaml_reader import Document, read_yaml


@dataclass(frozen=True, slots=True)
class SourceText:
    """One file of a source: its name in messages, the folder it is in, and what it holds.

    Of a file with `defaults_only` nothing counts but its JobDefaults.
    """

    file: str
    folder: str
    text: bytes
    defaults_only: bool = False


def load_jobs(texts: Iterable[SourceText], config: Config, namespace: str = "") -> LoadedJobs:
    """Every job of `texts`, and every problem; `namespace` is for specs that name none.

    Guarantees: one result for one input, whatever the order of the files; a job with an error is
    not among the jobs. Errors are collected, never raised.
    """
    jobs: list[tuple[str, Document]] = []
    defaults: dict[str, Document] = {}
    problems: list[Problem] = []
    invalid: set[int] = set()
    for text in texts:
        content = read_yaml(text.text, text.file)
        problems.extend(content.problems)
        for document in content.documents:
            if text.defaults_only and not _is_defaults(document):
                continue
            checked = check_document(document)
            problems.extend(checked.problems)
            if checked.has_its_shape:
                problems.extend(_sort_in(document, text.folder, jobs, defaults))
            invalid |= {id(document)} if checked.problems else set()
    loaded: list[Job] = []
    for folder, document in jobs:
        effective = _effective(document, folder, defaults, config, namespace)
        found = check_spec(effective)
        problems.extend(found)
        fine = all(problem.severity is Severity.WARNING for problem in found)
        if fine and id(document) not in invalid:
            loaded.append(_build(effective, folder))
    problems.extend(_duplicates(loaded))
    loaded.sort(key=lambda job: job.place)
    return LoadedJobs(tuple(loaded), tuple(sorted(set(problems), key=_in_order)))


def placed(jobs: Iterable[Job], namespace: str, limits: Limits) -> tuple[Job, ...]:
    """`jobs`, with the context's namespace where they have none of their own.

    Errors: InvalidInputError when that namespace is not allowed, or gives two jobs one name.
    """
    result = tuple(job if job.namespace else replace(job, namespace=namespace) for job in jobs)
    problems = [*_duplicates(result)]
    allowed = limits.allowed_namespaces
    if allowed is not None:
        hint = f"limits.allowedNamespaces: {', '.join(allowed) or 'none'}"
        problems += [
            Problem(job.place, f"the namespace {job.namespace} is not allowed", hint)
            for job in result
            if not matches_any(job.namespace, allowed)
        ]
    if problems:
        raise InvalidInputError(tuple(problems))
    return result


def _in_order(problem: Problem) -> tuple[Place, str]:
    return problem.where, problem.message


def _is_defaults(document: Document) -> bool:
    return isinstance(document.data, dict) and document.data.get("kind") == JOB_DEFAULTS


def _sort_in(
    document: Document,
    folder: str,
    jobs: list[tuple[str, Document]],
    defaults: dict[str, Document],
) -> Iterable[Problem]:
    match document.data["kind"]:
        case kind if kind == JOB_SPEC:
            jobs.append((folder, document))
        case kind if kind == JOB_DEFAULTS and folder in defaults:
            first = defaults[folder].place
            yield Problem(
                document.place,
                f"a second {JOB_DEFAULTS} in one folder",
                f"the first is at {first}; merge them",
            )
        case kind if kind == JOB_DEFAULTS:
            defaults[folder] = document
        case kind if kind == ENGINE_CONFIG:
            yield Problem(
                document.place,
                f"an {ENGINE_CONFIG} among the specs has no effect",
                "it is the operator's: give it with --config",
                Severity.WARNING,
            )


def _effective(
    document: Document,
    folder: str,
    defaults: Mapping[str, Document],
    config: Config,
    namespace: str,
) -> EffectiveSpec:
    own = PurePath(folder)
    above = [defaults[str(path)] for path in (own, *own.parents) if str(path) in defaults]
    layers = (document, *above)
    specs = [BUILT_IN, config.defaults, *(d.data.get("spec", {}) for d in reversed(layers))]
    named = [d.data.get("metadata", {}).get("namespace") for d in layers]
    chosen = named[0] or namespace or next((name for name in named if name), "")
    return EffectiveSpec(merge_specs(specs), chosen, layers, config)


def _build(effective: EffectiveSpec, folder: str) -> Job:
    spec, config, document = effective.spec, effective.config, effective.own
    timeout, start_timeout, leeway = (
        parse_duration(spec[name]) for name in ("timeout", "startTimeout", "ttlLeeway")
    )
    timeout = min(timeout, config.limits.max_timeout or timeout)
    ttl = parse_duration(spec["ttl"]) if "ttl" in spec else start_timeout + timeout + leeway
    return Job(
        name=effective.name,
        namespace=effective.namespace,
        labels=_metadata(effective, "labels"),
        annotations=_metadata(effective, "annotations"),
        spec=spec,
        timeout=timeout if config.features.active_deadline_seconds else None,
        start_timeout=start_timeout,
        ttl=ttl,
        policies=_policies(effective),
        secrets={
            name: _secret_source(source, effective.place("spec", "secrets", name))
            for name, source in spec.get("secrets", {}).items()
        },
        credentials=tuple(
            RegistryCredential(
                entry["registry"],
                entry["username"],
                _secret_source(
                    entry["password"],
                    effective.place("spec", "registryCredentials", index, "password"),
                ),
            )
            for index, entry in enumerate(spec.get("registryCredentials", ()))
        ),
        retry=_retry(spec.get("retry", {})),
        on_change=OnChange(spec["onChange"]),
        spec_hash=spec_hash(document.data),
        place=document.place,
        folder=folder,
    )


def _metadata(effective: EffectiveSpec, field: str) -> dict[str, str]:
    merged: dict[str, Any] = {}
    for document in reversed(effective.layers):
        merged = merge_mappings(merged, document.data.get("metadata", {}).get(field, {}))
    return merged


def _policies(effective: EffectiveSpec) -> dict[str, tuple[str, ...]]:
    allowed = effective.config.limits.allowed_pull_policies
    lists = {
        name: tuple(p for p in policy_list(c.get("pullPolicy")) if allowed is None or p in allowed)
        for name, _, c in effective.containers()
    }
    return {name: policies for name, policies in lists.items() if policies}


def _secret_source(source: Mapping[str, str], place: Place) -> SecretSource:
    return SecretSource(place, source.get("value"), source.get("fromEnv"), source.get("fromFile"))


def _retry(value: Mapping[str, Any]) -> Retry:
    return Retry(value.get("max", 0), frozenset(value["on"]) if "on" in value else Retry().on)


def _duplicates(jobs: Iterable[Job]) -> Iterable[Problem]:
    first: dict[tuple[str, str], Place] = {}
    for job in sorted(jobs, key=lambda job: job.place):
        identity = (job.namespace, job.name)
        if identity in first:
            yield Problem(
                job.place,
                f"a second job is named {job.name}",
                f"the first is at {first[identity]}; rename one",
            )
        first.setdefault(identity, job.place)
