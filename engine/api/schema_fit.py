"""Whether data fits a JSON Schema, yes or no: fast for the many specs that are fine.

Yes is certain; no only means that the validator that can tell why has to look
(`engine.api.schema_errors`), which also has the last word: the two differ over `$` in patterns.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from engine.api.schema_files import SCHEMA_FILES, schema_text


def fits(data: Any, api_version: str, kind: str) -> bool:
    """Whether the schema of `kind` has nothing to say about `data`."""
    try:
        return _checker(api_version, kind)(data)
    except (ValueError, TypeError, OverflowError):
        return False


@cache
def _checker(api_version: str, kind: str) -> Callable[[Any], bool]:
    schema = json.loads(schema_text(api_version, kind))
    validator = Draft202012Validator(schema, retriever=_shipped)
    is_valid: Callable[[Any], bool] = validator.is_valid
    return is_valid


def _shipped(uri: str) -> Any:
    """A $ref names one of the shipped schemas; nothing is ever fetched."""
    name = uri.rpartition("/")[2]
    key = next(key for key, file in SCHEMA_FILES.items() if file == name)
    return json.loads(schema_text(*key))
