"""What one object uses of a quota, and which quota scopes it falls under."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from engine.sandbox import kinds, quantity
from engine.sandbox.admission.pod_defaults import qos_class

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Obj

Usage = dict[str, Fraction]

_ONE = Fraction(1)
_ENDED = ("Succeeded", "Failed")
COMPUTE = ("cpu", "memory", "ephemeral-storage")
_PLAIN_COUNTS = ("secrets", "configmaps", "services", "resourcequotas")


def usage_of(kind: Kind, obj: Obj) -> Usage:
    """What one object counts for in a quota."""
    counted = f"count/{kind.resource}" + (f".{kind.group}" if kind.group else "")
    if kind is not kinds.PODS:
        return {counted: _ONE, **({kind.resource: _ONE} if kind.resource in _PLAIN_COUNTS else {})}
    if obj.get("status", {}).get("phase") in _ENDED:
        return {counted: _ONE}
    usage: Usage = {counted: _ONE, "pods": _ONE}
    for side in ("requests", "limits"):
        for name, amount in pod_resources(obj["spec"], side).items():
            usage[f"{side}.{name}"] = amount
            if side == "requests":
                usage[name] = amount
    return usage


def pod_resources(spec: Obj, side: str) -> Usage:
    """What the scheduler counts: all containers at once, or the hungriest moment of their start."""
    running = _sum(spec.get("containers", ()), side)
    sidecars: Usage = {}
    starting: Usage = {}
    for container in spec.get("initContainers", ()):
        own = _sum([container], side)
        if container.get("restartPolicy") == "Always":
            sidecars = _add(sidecars, own)
            own = {}
        starting = _most(starting, _add(sidecars, own))
    return _most(_add(running, sidecars), starting)


def _sum(containers: Iterable[Obj], side: str) -> Usage:
    total: Usage = {}
    for container in containers:
        amounts = (container.get("resources") or {}).get(side, {})
        total = _add(total, {name: quantity.parse(value) for name, value in amounts.items()})
    return total


def _add(first: Usage, second: Usage) -> Usage:
    return {n: first.get(n, Fraction()) + second.get(n, Fraction()) for n in {**first, **second}}


def _most(first: Usage, second: Usage) -> Usage:
    zero = Fraction()
    return {n: max(first.get(n, zero), second.get(n, zero)) for n in {**first, **second}}


def in_scope(scope: str, pod: Obj) -> bool:
    """Whether a quota of this scope counts the Pod."""
    spec = pod["spec"]
    match scope:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            return bool(spec.get("priorityClassName"))
    return True


def meets(requirement: Obj, pod: Obj) -> bool:
    """One term of a quota's scopeSelector."""
    scope, values = requirement.get("scopeName", ""), requirement.get("values", [])
    if scope != "PriorityClass":
        return in_scope(scope, pod)
    name = pod["spec"].get("priorityClassName", "")
    match requirement.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def unspecified(pod: Obj, wanted: Iterable[str]) -> dict[str, list[str]]:
    """Per limited compute resource, the containers that don't say how much they use."""
    out: dict[str, list[str]] = {}
    for resource in sorted(wanted):
        side, dot, name = resource.partition(".")
        if not dot:
            side, name = "requests", resource
        if side not in ("requests", "limits") or name not in COMPUTE:
            continue
        silent = [
            container["name"]
            for where in ("containers", "initContainers")
            for container in pod["spec"].get(where, ())
            if name not in (container.get("resources") or {}).get(side, {})
        ]
        if silent:
            out[resource] = sorted(silent)
    return out
