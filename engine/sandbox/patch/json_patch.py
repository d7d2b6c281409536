"""JSON Patch (RFC 6902), with the API server's answers where an operation can't be done."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from engine.sandbox.errors import StatusError, bad_request

if TYPE_CHECKING:
    from engine.sandbox.values import Json, Obj

MOST_OPERATIONS = 10_000
_MISSING = object()


class _FailedError(Exception):
    """One operation can't be done."""


def json_patch(doc: Json, operations: Json) -> Json:
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
    except _FailedError:
        raise _rejected() from None
    return doc


def _rejected() -> StatusError:
    return StatusError(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        {},
    )


def _apply(doc: Json, operation: Obj) -> Json:
    name, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise _FailedError("missing path: missing value")
    steps = _steps(path)
    match name:
        case "test":
            if _get(doc, steps) != operation.get("value"):
                raise _FailedError(f"testing value {path} failed: test failed")
            return doc
        case "add" | "replace":
            if "value" not in operation:
                raise _FailedError(f"{name} operation does not have a value: missing value")
            return _set(doc, steps, operation["value"], path, replace=name == "replace")
        case "remove":
            _remove(doc, steps, path)
            return doc
        case "move" | "copy":
            origin = str(operation.get("from", ""))
            value = _get(doc, _steps(origin))
            if value is _MISSING:
                raise _FailedError(
                    f"{name} operation does not apply: doc is missing path: {origin}"
                )
            if name == "move":
                _remove(doc, _steps(origin), origin)
            else:
                value = copy.deepcopy(value)
            return _set(doc, steps, value, path, replace=False)
    raise _FailedError(f"Unexpected kind: {name}")


def _steps(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise _FailedError(f"operation does not apply: doc is missing path: {path}: missing value")
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _index(step: str, length: int) -> int:
    if not step.isdigit() or int(step) > length:
        raise _FailedError(f"Unable to access invalid index: {step}: invalid index referenced")
    return int(step)


def _get(doc: Json, steps: list[str]) -> Json:
    for step in steps:
        if isinstance(doc, dict) and step in doc:
            doc = doc[step]
        elif isinstance(doc, list) and step.isdigit() and int(step) < len(doc):
            doc = doc[int(step)]
        else:
            return _MISSING
    return doc


def _set(doc: Json, steps: list[str], value: Json, path: str, *, replace: bool) -> Json:
    if not steps:
        return value
    parent, last = _get(doc, steps[:-1]), steps[-1]
    verb = "replace" if replace else "add"
    if isinstance(parent, dict):
        if replace and last not in parent:
            raise _FailedError(f"replace operation does not apply: doc is missing key: {path}")
        parent[last] = value
    elif isinstance(parent, list):
        at = len(parent) if last == "-" and not replace else _index(last, len(parent))
        if replace:
            if at == len(parent):
                raise _FailedError(f"replace operation does not apply: doc is missing key: {path}")
            parent[at] = value
        else:
            parent.insert(at, value)
    else:
        raise _FailedError(f'{verb} operation does not apply: doc is missing path: "{path}"')
    return doc


def _remove(doc: Json, steps: list[str], path: str) -> None:
    parent = _get(doc, steps[:-1])
    if steps and isinstance(parent, dict) and steps[-1] in parent:
        del parent[steps[-1]]
    elif steps and isinstance(parent, list) and _index(steps[-1], len(parent)) < len(parent):
        del parent[int(steps[-1])]
    else:
        raise _FailedError(f'remove operation does not apply: doc is missing path: "{path}"')
