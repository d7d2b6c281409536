"""docs/reference is what the generator makes of the code, and says something of everything."""

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.generate.__main__ import FOLDER, pages
from docs.generate.results import meanings
from engine.api.schema_docs import KINDS, FieldDoc, explain_field
from engine.api.versions import API_VERSION, SCHEMAS
from engine.errors import ExitCode
from engine.files import resource_dir
from engine.status.outcome import EventReason, Reason
from tests.unit.api.test_schemas import validators

WITHOUT_EXAMPLE = {"apiVersion", "kind", "metadata", "spec"}
"""Whose example is a document."""


def test_the_reference_is_what_the_generator_makes() -> None:
    made = pages()
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == made, (
        "run make reference"
    )


def fields(kind: str, *path: str) -> Iterator[tuple[str, FieldDoc]]:
    """Every field that the schema itself describes."""
    found = explain_field(kind, path)
    for field in () if found.of_kubernetes else found.fields:
        yield ".".join([*path, field.name]), field
        yield from fields(kind, *path, field.name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_meaning(kind: str) -> None:
    assert [path for path, field in fields(kind) if not field.description] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_below_a_section_has_an_example(kind: str) -> None:
    missing = [path for path, field in fields(kind) if "." in path and field.example is None]
    assert missing == []


def examples(node: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    if isinstance(node, dict):
        for example in node.get("examples", ()) if isinstance(node.get("examples"), list) else ():
            yield node, example
        for below in node.values():
            yield from examples(below)
    elif isinstance(node, list):
        for below in node:
            yield from examples(below)


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_of_the_schema_is_valid(kind: str) -> None:
    schema = json.loads((resource_dir("schemas") / SCHEMAS[API_VERSION, kind]).read_bytes())
    (validator,) = [one for one in validators(kind) if isinstance(one, Draft202012Validator)]
    found = [*examples(schema)]
    assert found
    for node, example in found:
        part = {**schema.get("definitions", {}), **node}
        below = {"definitions": schema.get("definitions", {}), **part}
        assert [*validator.evolve(schema=below).iter_errors(example)] == [], example


@pytest.mark.parametrize("enum", [Reason, EventReason, ExitCode])
def test_every_reason_and_exit_code_says_what_it_means(enum: type[Enum]) -> None:
    assert [*meanings(enum)] == [*enum]
