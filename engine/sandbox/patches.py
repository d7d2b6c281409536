"""The patches that know nothing of types, with the API server's answers where one can't be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonpatch
from jsonpointer import JsonPointerException

from engine.sandbox.errors import StatusError, bad_request

if TYPE_CHECKING:
    from engine.sandbox.values import Json

MOST_OPERATIONS = 10_000


def json_patch(doc: Json, operations: Json) -> Json:
    """The document after a JSON Patch (RFC 6902). ``doc`` may be mutated.

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
        return jsonpatch.apply_patch(doc, operations, in_place=True)
    # A step through a text or a number is a TypeError there.
    except (jsonpatch.JsonPatchException, JsonPointerException, TypeError):
        words = "the server rejected our request due to an error in our request"
        raise StatusError(422, "Invalid", words, {}) from None


def merge_patch(doc: Json, patch: Json) -> Json:
    """The document after a JSON merge patch (RFC 7386). ``doc`` may be mutated."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(doc, dict):
        doc = {}
    for name, value in patch.items():
        if value is None:
            doc.pop(name, None)
        else:
            doc[name] = merge_patch(doc.get(name), value)
    return doc
