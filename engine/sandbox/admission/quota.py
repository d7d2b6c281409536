"""ResourceQuotas: what is used, kept up to date by every change, and the refusal in its words."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from engine.sandbox import kinds, quantity
from engine.sandbox.admission.pod_defaults import qos_class
from engine.sandbox.errors import forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.sandbox.kinds import Kind
    from engine.sandbox.store import Change, Storage
    from engine.sandbox.values import Obj

Usage = dict[str, Fraction]

_ONE, _ZERO = Fraction(1), Fraction()
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
    return {n: first.get(n, _ZERO) + second.get(n, _ZERO) for n in {**first, **second}}


def _most(first: Usage, second: Usage) -> Usage:
    return {n: max(first.get(n, _ZERO), second.get(n, _ZERO)) for n in {**first, **second}}


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


class _Quota:
    """One ResourceQuota and the share of every object in it."""

    def __init__(self, obj: Obj) -> None:
        spec = obj.get("spec", {})
        self.name: str = obj["metadata"]["name"]
        self.spec = spec
        self.hard: Usage = {name: quantity.parse(v) for name, v in spec.get("hard", {}).items()}
        self.binary = {
            name: str(value).endswith("i") for name, value in spec.get("hard", {}).items()
        }
        self.scopes: list[str] = spec.get("scopes", [])
        self.used: Usage = dict.fromkeys(self.hard, _ZERO)
        self.shares: dict[tuple[str, str], Usage] = {}

    def covers(self, kind: Kind, obj: Obj) -> bool:
        """Whether the object is in the quota's scopes; a scoped quota is about pods only."""
        is_in = all(in_scope(scope, obj) for scope in self.scopes) if kind is kinds.PODS else False
        return is_in or not self.scopes

    def share(self, kind: Kind, obj: Obj) -> Usage:
        """What the object uses of this quota; nothing when it is out of its scopes."""
        if not self.covers(kind, obj):
            return {}
        usage = usage_of(kind, obj)
        return {name: usage[name] for name in self.hard if name in usage}

    def set_share(self, key: tuple[str, str], share: Usage) -> bool:
        before = self.shares.pop(key, {})
        if share:
            self.shares[key] = share
        if before == share:
            return False
        for name in {**before, **share}:
            self.used[name] += share.get(name, _ZERO) - before.get(name, _ZERO)
        return True

    def status(self) -> Obj:
        return {"hard": dict(self.spec.get("hard", {})), "used": self.written(self.used)}

    def written(self, usage: Usage) -> dict[str, str]:
        return {
            name: quantity.write(usage[name], binary=self.binary[name] or "memory" in name)
            for name in sorted(usage)
        }


class Quotas:
    """Listens to storage; ``check`` refuses a create, ``flush`` writes ``status.used``."""

    def __init__(self, storage: Storage, soon: Callable[[Callable[[], None]], None]) -> None:
        self._storage = storage
        self._soon = soon
        self._by_namespace: dict[str, dict[str, _Quota]] = {}
        self._stale: set[tuple[str, str]] = set()
        storage.listen(self._on_change)

    def check(self, kind: Kind, obj: Obj) -> None:
        """Errors: 403 ``exceeded quota``, or ``failed quota`` when a pod doesn't name its needs."""
        meta = obj["metadata"]
        name = meta.get("name", "")
        for quota in self._by_namespace.get(meta.get("namespace", ""), {}).values():
            if not quota.covers(kind, obj):
                continue
            share = quota.share(kind, obj)
            if kind is kinds.PODS and (silent := unspecified(obj, quota.hard)):
                who = "; ".join(f"{need} for: {','.join(named)}" for need, named in silent.items())
                why = f"failed quota: {quota.name}: must specify {who}"
                raise forbidden(kind.group, kind.resource, name, why)
            over = {n: a for n, a in share.items() if quota.used[n] + a > quota.hard[n] and a > 0}
            if over:
                asked, used, limited = (
                    ",".join(f"{n}={v}" for n, v in quota.written(amounts).items())
                    for amounts in (
                        over,
                        {n: quota.used[n] for n in over},
                        {n: quota.hard[n] for n in over},
                    )
                )
                why = (
                    f"exceeded quota: {quota.name}, requested: {asked}, used: {used}, "
                    f"limited: {limited}"
                )
                raise forbidden(kind.group, kind.resource, name, why)

    def flush(self) -> None:
        """Write the status of every quota whose use has changed."""
        with self._storage.lock:
            stale, self._stale = self._stale, set()
            for namespace, name in stale:
                quota = self._by_namespace.get(namespace, {}).get(name)
                entry = self._storage.get(kinds.QUOTAS, namespace, name)
                if quota is None or entry is None or entry.obj.get("status") == quota.status():
                    continue
                self._storage.put(kinds.QUOTAS, {**entry.thaw(), "status": quota.status()})

    def _on_change(self, change: Change) -> None:
        kind, namespace = change.entry.kind, change.entry.namespace
        if kind is kinds.QUOTAS:
            self._note_quota(change)
        quotas = self._by_namespace.get(namespace)
        if not quotas or kind is kinds.EVENTS:
            return
        key = (kind.resource, change.entry.name)
        for quota in quotas.values():
            share = {} if change.type == "DELETED" else quota.share(kind, change.entry.obj)
            if quota.set_share(key, share):
                self._mark(namespace, quota.name)

    def _note_quota(self, change: Change) -> None:
        namespace, name = change.entry.key
        held = self._by_namespace.setdefault(namespace, {})
        if change.type == "DELETED":
            held.pop(name, None)
            return
        known = held.get(name)
        if known is not None and known.spec == change.entry.obj.get("spec", {}):
            return
        quota = held[name] = _Quota(change.entry.obj)
        for kind in kinds.ALL:
            if kind.namespaced and kind is not kinds.EVENTS:
                for entry in self._storage.entries(kind, namespace):
                    quota.set_share((kind.resource, entry.name), quota.share(kind, entry.obj))
        self._mark(namespace, name)

    def _mark(self, namespace: str, name: str) -> None:
        if not self._stale:
            self._soon(self.flush)
        self._stale.add((namespace, name))
