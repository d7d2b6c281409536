"""Label and field selectors: the query's text turned into one predicate over an object."""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.sandbox.errors import bad_request
from engine.sandbox.values import Json, Obj

Match = Callable[[Obj], bool]

_TERM = re.compile(
    r"""\s*(?:
      (?P<absent>!)\s*(?P<not_key>[\w./-]+)
    | (?P<set_key>[\w./-]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)
    | (?P<key>[\w./-]+)\s*(?:(?P<eq>==|=|!=)\s*(?P<value>[\w.-]*))?
    )\s*(?:,|$)""",
    re.VERBOSE,
)

_FIELDS: dict[str, tuple[str, ...]] = {
    "*": ("metadata.name", "metadata.namespace"),
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "secrets": ("type",),
    "jobspecs": ("status.state",),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}


def labels(text: str) -> Match | None:
    """The full syntax: ``a=b,c!=d,e in (f,g),h notin (i),j,!k``. None selects everything."""
    tests: list[Callable[[dict[str, str]], bool]] = []
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None or found.end() == at:
            raise bad_request(
                f"unable to parse requirement: found '{text[at:]}', expected: identifier"
            )
        tests.append(_label_test(found))
        at = found.end()
    if not tests:
        return None
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in tests)


def _label_test(found: re.Match[str]) -> Callable[[dict[str, str]], bool]:
    part = found.groupdict()
    if part["absent"]:
        return lambda have, key=part["not_key"]: key not in have  # type: ignore[misc]
    if part["op"]:
        values = {value.strip() for value in part["values"].split(",")}
        key = part["set_key"]
        if part["op"] == "in":
            return lambda have: have.get(key) in values
        return lambda have: have.get(key) not in values
    key, value = part["key"], part["value"]
    match part["eq"]:
        case None:
            return lambda have: key in have
        case "!=":
            return lambda have: have.get(key) != value
    return lambda have: have.get(key) == value


def fields(text: str, resource: str) -> Match | None:
    """``a=b,c!=d`` over the fields that the real server indexes for this resource."""
    tests: list[tuple[tuple[str, ...], str, bool]] = []
    for term in filter(None, (part.strip() for part in text.split(","))):
        found = re.fullmatch(r"([\w.]+)\s*(==|=|!=)\s*(.*)", term)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, sign, value = found.groups()
        if path not in _FIELDS["*"] and path not in _FIELDS.get(resource, ()):
            raise bad_request(f"field label not supported: {path}")
        tests.append((tuple(path.split(".")), value, sign != "!="))
    if not tests:
        return None
    return lambda obj: all(
        (field_of(obj, path) == value) is wanted for path, value, wanted in tests
    )


def field_of(obj: Obj, path: tuple[str, ...]) -> str:
    """A field as field selectors compare it; "" where it is missing."""
    node: Json = obj
    if path == ("source",):
        path = ("source", "component")
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    if path == ("spec", "unschedulable"):
        return "true" if node else "false"
    return "" if node is None else str(node)


def both(first: Match | None, second: Match | None) -> Match | None:
    """What fits both; None fits everything."""
    if first is None or second is None:
        return first or second
    return lambda obj: first(obj) and second(obj)
