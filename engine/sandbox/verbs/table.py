"""Tables: the columns that ``kubectl get`` prints, as the server computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.clock import parse_rfc3339
from engine.sandbox.store import Entry, encode
from engine.sandbox.values import Json, Obj
from engine.sandbox.verbs.ages import age, duration
from engine.sandbox.verbs.table_pods import pod_cells
from engine.sandbox.verbs.views import partial

if TYPE_CHECKING:
    from engine.sandbox.kinds import Kind

Cells = Callable[[Obj, float], list[Json]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a kind's columns, which of them are for ``-o wide``, and the cells of a row."""

    names: tuple[str, ...]
    wide: frozenset[str]
    cells: Cells

    def definitions(self) -> list[Obj]:
        """The columns' definitions."""
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
    kind: Kind, entries: Iterable[Entry], now: float, *, meta: Obj, headers: bool = True
) -> bytes:
    """These objects as a Table, encoded."""
    columns = _COLUMNS.get(kind.resource, _PLAIN)
    out: Obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    out["columnDefinitions"] = columns.definitions() if headers else None
    out["rows"] = [
        {"cells": columns.cells(entry.obj, now), "object": partial(entry)} for entry in entries
    ]
    return encode(out) + b"\n"


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _event(event: Obj, now: float) -> list[Json]:
    about = event.get("involvedObject", {})
    series = event.get("series", {})
    first = event.get("firstTimestamp") or event.get("eventTime") or ""
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or first
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    source = event.get("source") or {}
    parts = source.get("component"), source.get("host")
    if not source:
        parts = event.get("reportingComponent"), event.get("reportingInstance")
    return [
        _since(last, now),
        event.get("type", ""),
        event.get("reason", ""),
        subject,
        about.get("fieldPath", ""),
        ", ".join(filter(None, parts)),
        event.get("message", "").strip(),
        _since(first, now),
        series.get("count") or event.get("count") or 1,
        _name(event),
    ]


def _since(when: str, now: float) -> str:
    return duration(now - parse_rfc3339(when)) if when else "<unknown>"


def _quota(quota: Obj, now: float) -> list[Json]:
    status = quota.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})
    pairs = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = ", ".join(text for name, text in pairs.items() if name.startswith("limits."))
    requests = ", ".join(text for name, text in pairs.items() if not name.startswith("limits."))
    return [_name(quota), requests, limits, age(quota, now)]


def _node(node: Obj, now: float) -> list[Json]:
    status = node.get("status", {})
    ready = any(
        c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ())
    )
    text = "Ready" if ready else "NotReady"
    if node.get("spec", {}).get("unschedulable"):
        text += ",SchedulingDisabled"
    info = status.get("nodeInfo", {})
    addresses = {a["type"]: a["address"] for a in status.get("addresses", ())}
    return [
        _name(node),
        text,
        "<none>",
        age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        "<none>",
        info.get("osImage", ""),
        info.get("kernelVersion", ""),
        info.get("containerRuntimeVersion", ""),
    ]


def _config_size(config: Obj) -> int:
    return len(config.get("data", {})) + len(config.get("binaryData", {}))


def _columns(names: str, cells: Cells, wide: Sequence[str] = ()) -> Columns:
    return Columns((*names.split(), *wide), frozenset(wide), cells)


_PLAIN = _columns("Name Age", lambda obj, now: [_name(obj), age(obj, now)])
_COLUMNS: dict[str, Columns] = {
    kinds.PODS.resource: _columns(
        "Name Ready Status Restarts Age",
        pod_cells,
        ("IP", "Node", "Nominated Node", "Readiness Gates"),
    ),
    kinds.CONFIGMAPS.resource: _columns(
        "Name Data Age", lambda obj, now: [_name(obj), _config_size(obj), age(obj, now)]
    ),
    kinds.SECRETS.resource: _columns(
        "Name Type Data Age",
        lambda obj, now: [_name(obj), obj["type"], len(obj.get("data", {})), age(obj, now)],
    ),
    kinds.NAMESPACES.resource: _columns(
        "Name Status Age", lambda obj, now: [_name(obj), obj["status"]["phase"], age(obj, now)]
    ),
    kinds.EVENTS.resource: Columns(
        (
            *("Last Seen", "Type", "Reason", "Object", "Subobject", "Source", "Message"),
            *("First Seen", "Count", "Name"),
        ),
        frozenset({"Subobject", "Source", "First Seen", "Count", "Name"}),
        _event,
    ),
    kinds.QUOTAS.resource: _columns("Name Request Limit Age", _quota),
    kinds.NODES.resource: _columns(
        "Name Status Roles Age Version",
        _node,
        ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    kinds.LEASES.resource: _columns(
        "Name Holder Age",
        lambda obj, now: [_name(obj), obj.get("spec", {}).get("holderIdentity", ""), age(obj, now)],
    ),
}
