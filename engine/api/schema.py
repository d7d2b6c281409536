"""A document against the JSON Schema of its version and the types of Kubernetes, with messages for
people, each at the place it is about.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jsonschema_rs import Draft202012Validator

from engine.api.kubernetes_fields import kubernetes_problems
from engine.api.schema_messages import explain, show, suggest, type_name
from engine.api.versions import API_VERSION, JOB_SPEC, VERSIONS, schema_text, to_model
from engine.api.yaml_reader import Document
from engine.errors import Diagnostic
from engine.kubeschema import KubernetesTypes, shipped_types

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking one document."""

    problems: tuple[Diagnostic, ...]
    """Everything that is refused, in the file's order."""
    document: Document | None
    """The document with the fields of the model; None if it can't be read as one.

    One that has the fields of its schema, and others besides, or misspelt fields of Kubernetes,
    can: its other errors are told as well.
    """


def check_document(document: Document, kubernetes: KubernetesTypes = shipped_types) -> Checked:
    """Check `document` against its schema and Kubernetes, and convert it to the model.

    Guarantees: pure. Errors are collected, never raised.
    """
    head = _head_problem(document)
    if head is not None:
        return Checked((head,), None)
    version, kind = document.data["apiVersion"], document.data["kind"]
    problems: set[Diagnostic] = set()
    has_its_shape = True
    if not is_valid(document.data, version, kind):
        errors = schema_errors(document.data, version, kind)
        problems.update(problem for error in errors for problem in explain(error, document))
        has_its_shape = all(error.validator == "additionalProperties" for error in errors)
    if has_its_shape or version == API_VERSION:
        document = to_model(document)
        problems.update(kubernetes_problems(document, kubernetes))
    return Checked(
        tuple(sorted(problems, key=lambda problem: (problem.where, problem.message))),
        document if has_its_shape else None,
    )


def _head_problem(document: Document) -> Diagnostic | None:
    data = document.data
    if not isinstance(data, dict):
        return Diagnostic(
            document.place,
            f"a job spec is a mapping, not {type_name(data)}",
            f"start with 'apiVersion: {API_VERSION}' and 'kind: {JOB_SPEC}'",
        )
    versions = sorted({version for version, _ in VERSIONS})
    kinds = sorted({kind for _, kind in VERSIONS})
    for field, known in (("apiVersion", versions), ("kind", kinds)):
        value = data.get(field)
        if value is None:
            return Diagnostic(document.place, f"{field} is missing", f"one of: {', '.join(known)}")
        if value not in known:
            return Diagnostic(
                document.locate([field]),
                f"{field} {show(value)} is not one that the engine knows",
                suggest(str(value), known),
            )
    version, kind = data["apiVersion"], data["kind"]
    if (version, kind) not in VERSIONS:
        others = sorted(other for other, its_kind in VERSIONS if its_kind == kind)
        return Diagnostic(
            document.locate(["apiVersion"]),
            f"{kind} is no kind of {version}",
            f"it is one of: {', '.join(others)}",
        )
    return None


def is_valid(data: Any, api_version: str, kind: str) -> bool:
    """Whether a schema has nothing to say about `data`: fast, for the many specs that are fine.

    Yes is certain. No only means that `schema_errors` has to look, which has the last word: the
    two validators differ over `$` in patterns.
    """
    try:
        return _fast_validator(api_version, kind)(data)
    except (ValueError, TypeError, OverflowError):
        return False


def schema_errors(data: Any, api_version: str, kind: str) -> list["ValidationError"]:
    """Everything that a schema refuses in `data`, error by error."""
    return list(_validator(api_version, kind).iter_errors(data))


@cache
def _fast_validator(api_version: str, kind: str) -> Callable[[Any], bool]:
    schema = json.loads(schema_text(api_version, kind))
    validator = Draft202012Validator(
        schema, retriever=lambda uri: _shipped_schemas()[uri.rpartition("/")[2]]
    )
    is_valid: Callable[[Any], bool] = validator.is_valid
    return is_valid


@cache
def _validator(api_version: str, kind: str) -> "Validator":
    """The validator that can tell why. Its import costs more than the check of a hundred specs."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    def matches_whole(
        validator: Any, pattern: str, instance: Any, _schema: Any
    ) -> Iterator[ValidationError]:
        """JSON Schema's `$` is the end of the text; Python's also stands before a last line break.

        Every pattern of the schemas is anchored at both ends.
        """
        if validator.is_type(instance, "string") and not re.fullmatch(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    extended = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {"pattern": matches_whole}
    )
    registry: Registry[Any] = Registry().with_resources(
        (name, DRAFT202012.create_resource(schema)) for name, schema in _shipped_schemas().items()
    )
    made: Validator = extended(json.loads(schema_text(api_version, kind)), registry=registry)
    return made


@cache
def _shipped_schemas() -> dict[str, Any]:
    """Every schema by its file's name, which is what a $ref names; nothing is ever fetched."""
    return {version.schema: json.loads(schema_text(*key)) for key, version in VERSIONS.items()}
