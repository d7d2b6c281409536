"""Judges an object by a ValidatingAdmissionPolicy, as the API server would: in CEL."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

Obj = dict[str, Any]


def refusals(policy: Obj, obj: Obj) -> list[str]:
    """The messages of what the policy refuses in a new object, in its order."""
    spec = policy["spec"]
    variables = {one["name"]: _value(one["expression"]) for one in spec["variables"]}
    names = {"object": obj, "oldObject": None, "variables": variables}
    if not all(_value(one["expression"], **names) for one in spec["matchConditions"]):
        return []
    return [
        str(_value(one["messageExpression"], **names))
        for one in spec["validations"]
        if not _value(one["expression"], **names)
    ]


def _value(expression: str, **names: Any) -> Any:
    return _program(expression).execute(names)


@cache
def _program(expression: str) -> Any:
    return pytest.importorskip("cel").compile(expression)
