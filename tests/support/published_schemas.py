"""Documents of formats that others define, judged by the schemas that those publish."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import validator_for
from referencing import Registry, Resource

_FOLDER = Path(__file__).parent / "schemas"


def require_valid(document: Any, schema: str) -> None:
    """Errors: AssertionError with every place where `document` isn't what `schema` says."""
    text = (_FOLDER / f"{schema}.json").read_text(encoding="utf-8")
    assert _errors(document, json.loads(text)) == []


def require_valid_bill_of_materials(document: Any) -> None:
    """Errors: as above. The published schema refers to two others."""
    schema, *others = (
        json.loads((_FOLDER / f"cyclonedx-{name}.json").read_text(encoding="utf-8"))
        for name in ("bom-1.6", "spdx", "jsf-0.82")
    )
    known = {
        f"{one['$id'].removesuffix('.schema.json')}.SNAPSHOT.schema.json": one for one in others
    }
    assert _errors(document, schema, known) == []


def require_valid_custom_resource(document: Any, definition: str) -> None:
    """Errors: as above, for fields that the definition doesn't know as well."""
    crd = json.loads((_FOLDER / f"crd-{definition}.json").read_text(encoding="utf-8"))
    group, (version,) = crd["spec"]["group"], crd["spec"]["versions"]
    assert document["apiVersion"] == f"{group}/{version['name']}"
    assert document["kind"] == crd["spec"]["names"]["kind"]
    schema = _closed(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    assert _errors(document, schema) == []


def _errors(document: Any, schema: Any, others: Mapping[str, Any] | None = None) -> list[str]:
    known = {name: Resource.from_contents(other) for name, other in (others or {}).items()}
    registry: Registry[Any] = Registry().with_resources(known.items())
    validator = validator_for(schema)(schema, registry=registry)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


def _closed(schema: Any) -> Any:
    """As `fieldValidation=Strict` takes it: no field but those that are listed."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        closed["type"] = ["integer", "string"]
    return closed


def require_valid_junit(text: str) -> None:
    """Errors: as above; the test is skipped without the library that knows XML Schema."""
    xmlschema = pytest.importorskip("xmlschema", reason="make .venv/.dev-installed installs it")
    schema = xmlschema.XMLSchema(str(_FOLDER / "junit-10.xsd"))
    assert [f"{e.path}: {e.reason}" for e in schema.iter_errors(text)] == []
