"""What a JSON Schema refuses of a document, error by error; only asked about those that don't fit.

The validator and all that it imports cost more than the check of a hundred specs.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from engine.api.schema_files import SCHEMA_FILES, schema_text


def schema_errors(data: Any, api_version: str, kind: str) -> list[ValidationError]:
    """Everything that the schema of `kind` refuses."""
    return list(_validator(api_version, kind).iter_errors(data))


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
