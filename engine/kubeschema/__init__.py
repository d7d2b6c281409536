"""What fields Kubernetes' kinds have: one table of types, made from the API's own OpenAPI.

The offline checks, the pod patch and the sandbox read the same table, so that they can't disagree.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from engine.errors import Diagnostic, InvalidInputError, SourceLocation
from engine.kubeschema.model import Schema
from engine.package_data import resource_dir

TABLE = "kubernetes/types.txt"
_HINT = "make it with: kubectl get --raw /openapi/v2"

KubernetesTypes = Callable[[], Schema]
"""Gives the types when they are needed: most specs have nothing that needs them."""


@cache
def shipped_types() -> Schema:
    """The types of the release that the engine is tested with."""
    from engine.kubeschema.table import read_table  # noqa: PLC0415 - most specs don't need it

    return read_table((resource_dir("schemas") / TABLE).read_text(encoding="utf-8"))


def read_types(path: Path) -> KubernetesTypes:
    """The types in an OpenAPI v2 document, as `kubectl get --raw /openapi/v2` prints it.

    Errors: InvalidInputError when it can't be read, or is something else.
    """
    from engine.kubeschema.openapi import OpenAPIError, table_from_openapi  # noqa: PLC0415
    from engine.kubeschema.table import read_table  # noqa: PLC0415 - as above

    try:
        schema = read_table(table_from_openapi(json.loads(path.read_bytes())))
    except OSError as error:
        problem = Diagnostic(SourceLocation(str(path)), f"can't be read: {error.strerror}", _HINT)
    except OpenAPIError as error:
        problem = Diagnostic(SourceLocation(str(path)), str(error), _HINT)
    except (ValueError, RecursionError) as error:
        problem = Diagnostic(SourceLocation(str(path)), f"this is no JSON: {error}", _HINT)
    else:
        return lambda: schema
    raise InvalidInputError((problem,))
