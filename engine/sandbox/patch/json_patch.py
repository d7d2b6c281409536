"""JSON Patch (RFC 6902), with the API server's answers where an operation can't be done."""

from __future__ import annotations

import copy
from typing import Any

from engine.sandbox.errors import StatusError, bad_request

MOST_OPERATIONS = 10_000
_MISSING = object()


class _Failed(Exception):
    """One operation can't be done."""


def json_patch(doc: Any, operations: Any) -> Any:
    """The patched document. ``doc`` may be mutated.

    Errors: 400 for what isn't a JSON patch; 422 for one that doesn't fit, a failed test included.
    """
    if not isinstance(operations, list) or not all(isinstance(op, dict) for op in operations):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MOST_OPERATIONS:
        message = (
            f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, "
            f"got {len(operations)}"
        )
        raise StatusError(413, "RequestEntityTooLarge", message)
    try:
        for operation in operations:
            doc = _apply(doc, operation)
    except _Failed:
        raise _rejected() from None
    return doc


def _rejected() -> StatusError:
    return StatusError(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        {},
    )


def _apply(doc: Any, operation: dict[str, Any]) -> Any:
    name, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise _Failed("missing path: missing value")
    steps = _steps(path)
    match name:
        case "test":
            if _get(doc, steps) != operation.get("value"):
                raise _Failed(f"testing value {path} failed: test failed")
            return doc
        case "add" | "replace":
            if "value" not in operation:
                raise _Failed(f"{name} operation does not have a value: missing value")
            return _set(doc, steps, operation["value"], path, replace=name == "replace")
        case "remove":
            _remove(doc, steps, path)
            return doc
        case "move" | "copy":
            origin = str(operation.get("from", ""))
            value = _get(doc, _steps(origin))
            if value is _MISSING:
                raise _Failed(f"{name} operation does not apply: doc is missing path: {origin}")
            if name == "move":
                _remove(doc, _steps(origin), origin)
            else:
                value = copy.deepcopy(value)
            return _set(doc, steps, value, path, replace=False)
    raise _Failed(f"Unexpected kind: {name}")


def _steps(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise _Failed(f"operation does not apply: doc is missing path: {path}: missing value")
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _index(step: str, length: int) -> int:
    if not step.isdigit() or int(step) > length:
        raise _Failed(f"Unable to access invalid index: {step}: invalid index referenced")
    return int(step)


def _get(doc: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(doc, dict) and step in doc:
            doc = doc[step]
        elif isinstance(doc, list) and step.isdigit() and int(step) < len(doc):
            doc = doc[int(step)]
        else:
            return _MISSING
    return doc


def _set(doc: Any, steps: list[str], value: Any, path: str, *, replace: bool) -> Any:
    if not steps:
        return value
    parent, last = _get(doc, steps[:-1]), steps[-1]
    verb = "replace" if replace else "add"
    if isinstance(parent, dict):
        if replace and last not in parent:
            raise _Failed(f"replace operation does not apply: doc is missing key: {path}")
        parent[last] = value
    elif isinstance(parent, list):
        at = len(parent) if last == "-" and not replace else _index(last, len(parent))
        if replace:
            if at == len(parent):
                raise _Failed(f"replace operation does not apply: doc is missing key: {path}")
            parent[at] = value
        else:
            parent.insert(at, value)
    else:
        raise _Failed(f'{verb} operation does not apply: doc is missing path: "{path}"')
    return doc


def _remove(doc: Any, steps: list[str], path: str) -> None:
    parent = _get(doc, steps[:-1])
    if steps and isinstance(parent, dict) and steps[-1] in parent:
        del parent[steps[-1]]
    elif steps and isinstance(parent, list) and _index(steps[-1], len(parent)) < len(parent):
        del parent[int(steps[-1])]
    else:
        raise _Failed(f'remove operation does not apply: doc is missing path: "{path}"')
