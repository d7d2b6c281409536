"""Documents of formats that others define, judged by the schemas that those publish."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

_FOLDER = Path(__file__).parent / "schemas"


def require_valid(document: Any, schema: str) -> None:
    """Errors: AssertionError with every place where `document` isn't what `schema` says."""
    text = (_FOLDER / f"{schema}.json").read_text(encoding="utf-8")
    validator = jsonschema_rs.validator_for(json.loads(text))
    assert [f"{e.instance_path}: {e.message}" for e in validator.iter_errors(document)] == []


def require_valid_junit(text: str) -> None:
    """Errors: as above; the test is skipped without the library that knows XML Schema."""
    xmlschema = pytest.importorskip("xmlschema", reason="make .venv/.dev-installed installs it")
    schema = xmlschema.XMLSchema(str(_FOLDER / "junit-10.xsd"))
    assert [f"{e.path}: {e.reason}" for e in schema.iter_errors(text)] == []
