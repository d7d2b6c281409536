"""Tables: the columns that ``kubectl get`` prints, as the server computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.sandbox import kinds
from engine.sandbox.clock import parse_rfc3339
from engine.sandbox.kinds import Kind
from engine.sandbox.store import Entry, encode
from engine.sandbox.verbs.views import partial

Obj = dict[str, Any]
Cells = Callable[[Obj, float], list[Any]]


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a kind's columns, those of ``-o wide`` after them, and the cells of a row."""

    names: tuple[str, ...]
    wide: tuple[str, ...]
    cells: Cells

    def definitions(self) -> list[Obj]:
        return [
            {
                "name": name,
                "type": "integer" if name in ("Data", "Secrets") else "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": int(at >= len(self.names)),
            }
            for at, name in enumerate(self.names + self.wide)
        ]


def table(
    kind: Kind, entries: Iterable[Entry], now: float, *, meta: Obj, headers: bool = True
) -> bytes:
    columns = _COLUMNS.get(kind.resource, _PLAIN)
    out: Obj = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    out["columnDefinitions"] = columns.definitions() if headers else None
    out["rows"] = [
        {"cells": columns.cells(entry.obj, now), "object": partial(entry)} for entry in entries
    ]
    return encode(out) + b"\n"


def age(obj: Obj, now: float) -> str:
    return duration(now - parse_rfc3339(obj["metadata"]["creationTimestamp"]))


def duration(seconds: float) -> str:
    """As kubectl shortens it: 5s, 3m10s, 47m, 5h12m, 3d4h."""
    left = max(0, int(seconds))
    if left < 120:
        return f"{left}s"
    minutes, rest = divmod(left, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days, rest = divmod(hours, 24)
    return f"{days}d{rest}h" if rest and days < 8 else f"{days}d"


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _pod(pod: Obj, now: float) -> list[Any]:
    spec, status = pod["spec"], pod.get("status", {})
    mains = status.get("containerStatuses", [])
    sidecars = [c["name"] for c in spec.get("initContainers", ()) if "restartPolicy" in c]
    started = [s for s in status.get("initContainerStatuses", ()) if s["name"] in sidecars]
    ready = sum(bool(s.get("ready")) for s in (*mains, *started))
    total = len(spec["containers"]) + len(sidecars)
    restarts = sum(int(s.get("restartCount", 0)) for s in mains)
    gates = ",".join(gate["name"] for gate in spec.get("readinessGates", ())) or "<none>"
    return [
        _name(pod),
        f"{ready}/{total}",
        pod_state(pod),
        str(restarts),
        age(pod, now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        gates,
    ]


def pod_state(pod: Obj) -> str:
    """The STATUS column: the most telling reason there is."""
    spec, status = pod["spec"], pod.get("status", {})
    text: str = status.get("reason") or status.get("phase") or ""
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            text = "SchedulingGated"
    sidecars = [c["name"] for c in spec.get("initContainers", ()) if "restartPolicy" in c]
    initialising = False
    for at, entry in enumerate(status.get("initContainerStatuses", ())):
        waiting = entry["state"].get("waiting")
        ended = entry["state"].get("terminated")
        if (ended and not ended["exitCode"]) or (
            entry["name"] in sidecars and entry.get("started")
        ):
            continue
        if ended:
            text = f"Init:{ended.get('reason') or 'ExitCode:' + str(ended['exitCode'])}"
        elif waiting and waiting.get("reason") not in ("", None, "PodInitializing"):
            text = f"Init:{waiting['reason']}"
        else:
            text = f"Init:{at}/{len(spec['initContainers'])}"
        initialising = True
        break
    if not initialising:
        for entry in reversed(status.get("containerStatuses", ())):
            waiting = entry["state"].get("waiting")
            ended = entry["state"].get("terminated")
            if waiting and waiting.get("reason"):
                text = waiting["reason"]
            elif ended:
                text = ended.get("reason") or f"ExitCode:{ended['exitCode']}"
    if status.get("reason") in ("Evicted", "DeadlineExceeded"):
        text = status["reason"]
    if pod["metadata"].get("deletionTimestamp") and status.get("phase") not in (
        "Failed",
        "Succeeded",
    ):
        text = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return text


def _event(event: Obj, now: float) -> list[Any]:
    about = event.get("involvedObject", {})
    last = event.get("lastTimestamp") or event.get("eventTime") or ""
    seen = duration(now - parse_rfc3339(last)) if last else "<unknown>"
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    source = event.get("source", {}).get("component") or event.get("reportingComponent", "")
    return [
        seen,
        event.get("type", ""),
        event.get("reason", ""),
        subject,
        event.get("message", "").strip(),
        about.get("fieldPath", ""),
        source,
        seen,
        str(event.get("count", 1)),
        _name(event),
    ]


def _quota(quota: Obj, now: float) -> list[Any]:
    status = quota.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})
    pairs = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = ", ".join(text for name, text in pairs.items() if name.startswith("limits."))
    requests = ", ".join(text for name, text in pairs.items() if not name.startswith("limits."))
    return [_name(quota), age(quota, now), requests, limits]


def _node(node: Obj, now: float) -> list[Any]:
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
    return Columns(tuple(names.split()), tuple(wide), cells)


_PLAIN = _columns("Name Age", lambda obj, now: [_name(obj), age(obj, now)])
_COLUMNS: dict[str, Columns] = {
    kinds.PODS.resource: _columns(
        "Name Ready Status Restarts Age",
        _pod,
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
        ("Last Seen", "Type", "Reason", "Object", "Message"),
        ("Subobject", "Source", "First Seen", "Count", "Name"),
        _event,
    ),
    kinds.QUOTAS.resource: _columns("Name Age Request Limit", _quota),
    kinds.NODES.resource: _columns(
        "Name Status Roles Age Version",
        _node,
        ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    kinds.SERVICE_ACCOUNTS.resource: _columns(
        "Name Secrets Age",
        lambda obj, now: [_name(obj), len(obj.get("secrets", ())), age(obj, now)],
    ),
    kinds.LEASES.resource: _columns(
        "Name Holder Age",
        lambda obj, now: [_name(obj), obj.get("spec", {}).get("holderIdentity", ""), age(obj, now)],
    ),
}
