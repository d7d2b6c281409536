"""JSON Schema validation with messages for people, each at the place it is about."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.errors import Problem
from engine.spec.schema_files import (
    API_VERSION,
    ENGINE_CONFIG,
    JOB_DEFAULTS,
    JOB_SPEC,
    SCHEMA_FILES,
    schema_text,
)
from engine.spec.schema_fit import Fits, Resolve, compile_schema
from engine.spec.schema_messages import explain, show, suggest, type_name
from engine.spec.yaml_reader import Document

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
    """What a schema refuses. A document that only has unknown fields still `has_its_shape`."""

    problems: tuple[Problem, ...]
    has_its_shape: bool


def check_document(document: Document) -> Checked:
    """Everything about `document` that its schema refuses, in the order of the file."""
    head = _head_problem(document)
    if head is not None:
        return Checked((head,), has_its_shape=False)
    data = document.data
    if _fits(data["apiVersion"], data["kind"])(data):
        return Checked((), has_its_shape=True)
    from engine.spec.schema_errors import schema_errors  # noqa: PLC0415 - most specs are fine

    errors = schema_errors(data, data["apiVersion"], data["kind"])
    problems = {problem for error in errors for problem in explain(error, document)}
    return Checked(
        tuple(sorted(problems, key=lambda problem: (problem.where, problem.message))),
        has_its_shape=all(error.validator == "additionalProperties" for error in errors),
    )


@cache
def _fits(api_version: str, kind: str) -> Fits:
    return compile_schema(*_resolve_in({})(SCHEMA_FILES[api_version, kind]))


def _resolve_in(schema: Any) -> Resolve:
    """A $ref is FILE#POINTER, and without a file about the schema that it is in."""

    def resolve(ref: str) -> tuple[Any, Resolve]:
        file, _, pointer = ref.partition("#")
        whole = _schemas()[file] if file else schema
        found = whole
        for step in pointer.split("/")[1:]:
            found = found[step]
        return found, _resolve_in(whole)

    return resolve


@cache
def _schemas() -> dict[str, Any]:
    return {name: json.loads(schema_text(*key)) for key, name in SCHEMA_FILES.items()}


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
