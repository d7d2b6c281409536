"""A document against the JSON Schema of its version and the types of Kubernetes, with messages for
people, each at the place it is about.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from jsonschema_rs import Draft202012Validator

from engine.api.kubernetes_fields import kubernetes_faults
from engine.api.schema_messages import (
    Violation,
    count,
    explain,
    quote_hint,
    show,
    suggest,
    type_name,
)
from engine.api.versions import API_VERSION, JOB_SPEC, VERSIONS, schema_text, to_model
from engine.api.yaml_reader import Document
from engine.errors import MAX_SHOWN, Diagnostic
from engine.kubeschema import KubernetesTypes, shipped_types

_BASE = "engine:///"
_ABOUT_FIELDS = ("required", "additionalProperties")
"""The validator checks both at once, and names either."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking one document."""

    problems: tuple[Diagnostic, ...]
    """What is refused."""
    document: Document | None
    """The document with the fields of the model; None if it can't be read as one.

    One that has the fields of its schema, and others besides, or misspelt fields of Kubernetes,
    can: its other errors are told as well.
    """
    more: int = 0
    """How many problems there are besides."""

    @property
    def ok(self) -> bool:
        """Whether nothing is refused."""
        return not (self.problems or self.more)


def check_document(
    document: Document, kubernetes: KubernetesTypes = shipped_types, most: int = MAX_SHOWN
) -> Checked:
    """Check `document` against its schema and Kubernetes, and convert it to the model.

    Guarantees: pure, and linear in the document's size. Errors are collected, never raised: the
    first `most` that are found, and the number of the others.
    """
    head = _head_problem(document)
    if head is not None:
        return Checked((head,), None)
    version, kind = document.data["apiVersion"], document.data["kind"]
    problems: list[Diagnostic] = []
    total = 0
    has_its_shape = True
    if not is_valid(document.data, version, kind):
        for violation in violations(document):
            has_its_shape &= violation.keyword == "additionalProperties"
            total += count(violation)
            problems += islice(explain(violation), max(most - len(problems), 0))
    if has_its_shape or version == API_VERSION:
        document = to_model(document)
        for fault in kubernetes_faults(document, kubernetes):
            total += 1
            if len(problems) < most:
                where = document.locate(fault.path, key=fault.in_key)
                quoted = fault.quotable and quote_hint(document, fault.path)
                problems.append(Diagnostic(where, fault.message, quoted or fault.hint))
    return Checked(tuple(problems), document if has_its_shape else None, total - len(problems))


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
    """Whether a schema has nothing to say about `data`: fast, for the many specs that are fine."""
    return _validator(api_version, kind).is_valid(data)


def violations(document: Document) -> Iterator[Violation]:
    """Everything that its schema refuses in a document.

    What one keyword refuses in one value is one violation: all unknown fields of a mapping, say.
    """
    data = document.data
    found = _validator(data["apiVersion"], data["kind"]).evaluate(data).errors()
    for pointer, location in dict.fromkeys(
        (error["instanceLocation"], error["schemaLocation"]) for error in found
    ):
        path: list[str | int] = []
        value = data
        for step in pointer.split("/")[1:]:
            is_list = isinstance(value, list)
            path.append(int(step) if is_list else step.replace("~1", "/").replace("~0", "~"))
            value = value[path[-1]]
        name, _, keywords = location.removeprefix(_BASE).partition("#/")
        *above, keyword = keywords.split("/")
        schema: Any = _shipped_schemas()[name]
        for step in above:
            schema = schema[step]
        in_names = "propertyNames" in above
        for each in _ABOUT_FIELDS if keyword in _ABOUT_FIELDS else (keyword,):
            violation = Violation(document, path, value, each, schema, in_names)
            if each in schema and count(violation):
                yield violation


@cache
def _validator(api_version: str, kind: str) -> Draft202012Validator:
    schemas = _shipped_schemas()
    return Draft202012Validator(
        schemas[VERSIONS[api_version, kind].schema],
        retriever=lambda uri: schemas[uri.removeprefix(_BASE)],
    )


@cache
def _shipped_schemas() -> Mapping[str, dict[str, Any]]:
    """Every schema by its file's name, which is what a $ref names; nothing is ever fetched."""
    return {
        version.schema: {**json.loads(schema_text(*key)), "$id": _BASE + version.schema}
        for key, version in VERSIONS.items()
    }
