"""Tables: the columns that ``kubectl get`` prints, as the server computes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.admission import custom_resources
from engine.sandbox.clock import parse_rfc3339
from engine.sandbox.store import Entry, encode
from engine.sandbox.values import Json, Obj
from engine.sandbox.verbs.views import partial

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.kinds import Kind

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))


_STEP = re.compile(r"\.(\w+)|\[(-?\d+):?\]")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a kind; ``wide`` are those of ``-o wide``."""

    names: tuple[str, ...]
    cells: Callable[[Obj, float], list[Json]]
    wide: tuple[str, ...] = ()

    def definitions(self) -> list[Obj]:
        """The columns of a Table, as the API defines them."""
        return [
            {
                "name": name,
                "type": "integer" if name in ("Data", "Count") else "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": int(name in self.wide),
            }
            for name in self.names
        ]


def table(
    context: Context, kind: Kind, entries: Iterable[Entry], meta: Obj, *, headers: bool = True
) -> bytes:
    """These objects as a Table, encoded."""
    now = context.clock.now()
    columns = _custom(context, kind) if kind.custom else _COLUMNS.get(kind.resource, _PLAIN)
    out: Obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    out["columnDefinitions"] = columns.definitions() if headers else None
    out["rows"] = [
        {"cells": columns.cells(entry.obj, now), "object": partial(entry)} for entry in entries
    ]
    return encode(out) + b"\n"


def _custom(context: Context, kind: Kind) -> Columns:
    listed = custom_resources.columns(context, kind)

    def cells(obj: Obj, now: float) -> list[Json]:
        found = [(column["type"], _at(obj, column["jsonPath"])) for column in listed]
        shown = [
            _since(value, now) if type_ == "date" and value else value for type_, value in found
        ]
        return [obj["metadata"]["name"], *shown]

    wide = tuple(column["name"] for column in listed if column.get("priority"))
    return Columns(("Name", *(column["name"] for column in listed)), cells, wide)


def _at(obj: Obj, path: str) -> Json:
    """The value at a path such as `.status.attempts[-1:].pod`; None where there is none."""
    found: Json = obj
    for name, index in _STEP.findall(path):
        if name:
            found = found.get(name) if isinstance(found, dict) else None
        else:
            found = found[int(index)] if isinstance(found, list) and found else None
    return found


def _since(when: str, now: float) -> str:
    seconds = max(0, int(now - parse_rfc3339(when)))
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _name_and_age(obj: Obj, now: float, *between: Json) -> list[Json]:
    meta = obj["metadata"]
    return [meta["name"], *between, _since(meta["creationTimestamp"], now)]


def _pod(pod: Obj, now: float) -> list[Json]:
    spec, status = pod["spec"], pod.get("status", {})
    statuses = status.get("containerStatuses", [])
    ready = f"{sum(bool(s.get('ready')) for s in statuses)}/{len(spec['containers'])}"
    return [
        *_name_and_age(pod, now, ready, _state(spec, pod), _restarts(statuses, now)),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
    ]


def _state(spec: Obj, pod: Obj) -> str:
    """The reason of the first container that has one, else the phase."""
    status = pod.get("status", {})
    state = str(status.get("reason") or status.get("phase", ""))
    if pod["metadata"].get("deletionTimestamp") and state not in ("Succeeded", "Failed"):
        return "Terminating"
    if any(c.get("reason") == "SchedulingGated" for c in status.get("conditions", ())):
        return "SchedulingGated"
    sidecars = [c["name"] for c in spec.get("initContainers", ()) if "restartPolicy" in c]
    for at, entry in enumerate(status.get("initContainerStatuses", ())):
        ended = entry["state"].get("terminated")
        serves = entry["name"] in sidecars and entry.get("started")
        if serves or (ended and not ended["exitCode"]):
            continue
        reason = _reason(entry) or "PodInitializing"
        count = len(spec["initContainers"])
        return f"Init:{at}/{count}" if reason == "PodInitializing" else f"Init:{reason}"
    reasons = map(_reason, status.get("containerStatuses", ()))
    return next(filter(None, reasons), state)


def _reason(entry: Obj) -> str:
    waiting, ended = (entry["state"].get(name, {}) for name in ("waiting", "terminated"))
    return str(waiting.get("reason") or ended.get("reason") or "")


def _restarts(statuses: Iterable[Obj], now: float) -> str:
    """How often, and how long ago the last one that failed had ended."""
    count, last = 0, ""
    for status in statuses:
        count += int(status.get("restartCount", 0))
        ended = status.get("lastState", {}).get("terminated", {}).get("finishedAt") or ""
        last = max(last, ended)
    return f"{count} ({_since(last, now)} ago)" if count and last else str(count)


def _event(event: Obj, now: float) -> list[Json]:
    about, source = event.get("involvedObject", {}), event.get("source") or {}
    first = event.get("firstTimestamp") or event.get("eventTime") or ""
    last = event.get("series", {}).get("lastObservedTime") or event.get("lastTimestamp") or first
    parts = source.get("component"), source.get("host")
    if not source:
        parts = event.get("reportingComponent"), event.get("reportingInstance")
    return [
        _since(last, now) if last else "<unknown>",
        event.get("type", ""),
        event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        event.get("message", "").strip(),
        about.get("fieldPath", ""),
        ", ".join(filter(None, parts)),
        event["metadata"]["name"],
    ]


def _quota(quota: Obj, now: float) -> list[Json]:
    status = quota.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})
    pairs = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = ", ".join(text for name, text in pairs.items() if name.startswith("limits."))
    requests = ", ".join(text for name, text in pairs.items() if not name.startswith("limits."))
    return _name_and_age(quota, now, requests, limits)


def _node(node: Obj, now: float) -> list[Json]:
    status = node.get("status", {})
    ready = {"type": "Ready", "status": "True"}
    up = any(ready.items() <= condition.items() for condition in status.get("conditions", ()))
    return [
        *_name_and_age(node, now, "Ready" if up else "NotReady", "<none>"),
        status.get("nodeInfo", {}).get("kubeletVersion", ""),
    ]


def _entries(obj: Obj) -> int:
    return len(obj.get("data", {})) + len(obj.get("binaryData", {}))


_PLAIN = Columns(("Name", "Age"), _name_and_age)
_COLUMNS: dict[str, Columns] = {
    kinds.PODS.resource: Columns(
        ("Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node"),
        _pod,
        ("IP", "Node", "Nominated Node"),
    ),
    kinds.CONFIGMAPS.resource: Columns(
        ("Name", "Data", "Age"), lambda obj, now: _name_and_age(obj, now, _entries(obj))
    ),
    kinds.SECRETS.resource: Columns(
        ("Name", "Type", "Data", "Age"),
        lambda obj, now: _name_and_age(obj, now, obj["type"], _entries(obj)),
    ),
    kinds.NAMESPACES.resource: Columns(
        ("Name", "Status", "Age"), lambda obj, now: _name_and_age(obj, now, obj["status"]["phase"])
    ),
    kinds.EVENTS.resource: Columns(
        ("Last Seen", "Type", "Reason", "Object", "Message", "Subobject", "Source", "Name"),
        _event,
        ("Subobject", "Source", "Name"),
    ),
    kinds.QUOTAS.resource: Columns(("Name", "Request", "Limit", "Age"), _quota),
    kinds.NODES.resource: Columns(("Name", "Status", "Roles", "Age", "Version"), _node),
    kinds.LEASES.resource: Columns(
        ("Name", "Holder", "Age"),
        lambda obj, now: _name_and_age(obj, now, obj.get("spec", {}).get("holderIdentity", "")),
    ),
}
