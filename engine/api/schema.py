"""JSON Schema validation with messages for people, each at the place it is about."""

from dataclasses import dataclass

from engine.api.kubernetes_fields import kubernetes_problems
from engine.api.schema_files import (
    API_VERSION,
    ENGINE_CONFIG,
    JOB_DEFAULTS,
    JOB_SPEC,
    SCHEMA_FILES,
    schema_text,
)
from engine.api.schema_fit import fits
from engine.api.schema_messages import explain, show, suggest, type_name
from engine.api.yaml_reader import Document
from engine.errors import Problem
from engine.kubeschema import KubernetesTypes, shipped_types

__all__ = [
    "API_VERSION",
    "ENGINE_CONFIG",
    "JOB_DEFAULTS",
    "JOB_SPEC",
    "SCHEMA_FILES",
    "check_document",
    "schema_text",
]


@dataclass(frozen=True, slots=True)
class Checked:
    """What is refused. A document that has the fields of its schema, and others besides, or
    misspelt fields of Kubernetes, still `has_its_shape`.
    """

    problems: tuple[Problem, ...]
    has_its_shape: bool


def check_document(document: Document, kubernetes: KubernetesTypes = shipped_types) -> Checked:
    """Everything about `document` that its schema or Kubernetes refuses, in the file's order."""
    head = _head_problem(document)
    if head is not None:
        return Checked((head,), has_its_shape=False)
    data = document.data
    problems = set(kubernetes_problems(document, kubernetes))
    has_its_shape = True
    if not fits(data, data["apiVersion"], data["kind"]):
        from engine.api.schema_errors import schema_errors  # noqa: PLC0415 - most specs are fine

        errors = schema_errors(data, data["apiVersion"], data["kind"])
        problems.update(problem for error in errors for problem in explain(error, document))
        has_its_shape = all(error.validator == "additionalProperties" for error in errors)
    return Checked(
        tuple(sorted(problems, key=lambda problem: (problem.where, problem.message))),
        has_its_shape=has_its_shape,
    )


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
