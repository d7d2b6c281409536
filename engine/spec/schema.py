"""JSON Schema validation with messages for people, each at the place it is about.

`apiVersion` and `kind` select the schema file, so that versions can live side by side.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from engine.errors import Problem
from engine.resources import resource_dir
from engine.spec.schema_messages import explain, show, suggest, type_name
from engine.spec.yaml_reader import Document

API_VERSION = "jobs.engine/v1alpha1"
JOB_SPEC = "JobSpec"
JOB_DEFAULTS = "JobDefaults"
ENGINE_CONFIG = "EngineConfig"

SCHEMA_FILES = {
    (API_VERSION, JOB_SPEC): "job.v1alpha1.schema.json",
    (API_VERSION, JOB_DEFAULTS): "jobdefaults.v1alpha1.schema.json",
    (API_VERSION, ENGINE_CONFIG): "engineconfig.v1alpha1.schema.json",
}


def schema_text(api_version: str, kind: str) -> str:
    """The schema file of `kind` in `api_version`; KeyError when there is none."""
    name = SCHEMA_FILES[api_version, kind]
    return (resource_dir("schemas") / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Checked:
    """What a schema refuses. A document that only has unknown fields still `has_its_shape`."""

    problems: tuple[Problem, ...]
    has_its_shape: bool


def check_document(document: Document) -> Checked:
    """Everything about `document` that its schema refuses, in the order of the file."""
    head = _head_problem(document)
    if head is not None:
        return Checked((head,), has_its_shape=False)
    data = document.data
    validator = _validator(data["apiVersion"], data["kind"])
    errors = list(validator.iter_errors(data))
    problems = {problem for error in errors for problem in explain(error, document)}
    return Checked(
        tuple(sorted(problems, key=lambda problem: (problem.where, problem.message))),
        has_its_shape=all(error.validator == "additionalProperties" for error in errors),
    )


def _matches_whole(
    validator: Any, pattern: str, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """JSON Schema's `$` is the end of the text; Python's also stands before a last line break.

    Every pattern of the schemas is anchored at both ends.
    """
    del schema
    if validator.is_type(instance, "string") and not re.fullmatch(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


_Validator: type[Validator] = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _matches_whole}
)


@cache
def _validator(api_version: str, kind: str) -> Validator:
    registry: Registry[Any] = Registry().with_resources(
        (name, DRAFT202012.create_resource(json.loads(schema_text(*key))))
        for key, name in SCHEMA_FILES.items()
    )
    return _Validator(json.loads(schema_text(api_version, kind)), registry=registry)


def _head_problem(document: Document) -> Problem | None:
    data = document.data
    if not isinstance(data, dict):
        return Problem(
            document.place,
            f"a job spec is a mapping, not {type_name(data)}",
            f"start with 'apiVersion: {API_VERSION}' and 'kind: {JOB_SPEC}'",
        )
    versions = sorted({version for version, _ in SCHEMA_FILES})
    kinds = sorted({kind for _, kind in SCHEMA_FILES})
    for field, known in (("apiVersion", versions), ("kind", kinds)):
        value = data.get(field)
        if value is None:
            return Problem(document.place, f"{field} is missing", f"one of: {', '.join(known)}")
        if value not in known:
            return Problem(
                document.locate([field]),
                f"{field} {show(value)} is not one that the engine knows",
                suggest(str(value), known),
            )
    return None
