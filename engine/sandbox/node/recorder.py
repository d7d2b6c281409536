"""Events about pods, as scheduler and kubelet write them: repeats are counted, old ones go."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.clock import rfc3339_micro

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj

KEPT_SECONDS = 3600.0


class Recorder:
    """Writes the events of one component."""

    def __init__(self, context: Context, component: str, host: str = "") -> None:
        self._context = context
        self._component = component
        self._host = host
        self._written: dict[tuple[str, ...], str] = {}
        self._ages: deque[tuple[float, str, str, tuple[str, ...]]] = deque()

    def record(
        self,
        about: Entry,
        kind: str,
        reason: str,
        message: str,
        field_path: str = "",
        action: str = "",
    ) -> None:
        """Write an event, or count it up when the same one was written before."""
        key = (about.uid, kind, reason, message, field_path)
        namespace = about.namespace or "default"
        with self._context.storage.lock:
            self._forget_old()
            holder = self._context.storage.get(kinds.NAMESPACES, "", namespace)
            if holder is None or holder.obj["metadata"].get("deletionTimestamp"):
                return
            known = self._context.storage.get(kinds.EVENTS, namespace, self._written.get(key, ""))
            if known is not None:
                event = {**known.obj, "metadata": dict(known.obj["metadata"]), **self._more(known)}
            else:
                event = self._fresh(about, namespace, field_path)
                event.update(reason=reason, message=message, type=kind, **self._once(action))
                self._written[key] = event["metadata"]["name"]
                at = self._context.clock.now()
                self._ages.append((at, namespace, event["metadata"]["name"], key))
            self._context.storage.put(kinds.EVENTS, event)

    def _fresh(self, about: Entry, namespace: str, field_path: str) -> Obj:
        suffix = f"{self._context.chance.getrandbits(64):016x}"
        subject = {
            "kind": about.kind.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "apiVersion": about.kind.api_version,
            "resourceVersion": about.obj["metadata"]["resourceVersion"],
            "fieldPath": field_path,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{about.name}.{suffix}",
                "namespace": namespace,
                "uid": self._context.new_uid(),
                "creationTimestamp": self._context.clock.stamp(),
            },
            "involvedObject": {name: value for name, value in subject.items() if value},
        }

    def _once(self, action: str) -> Obj:
        """The kubelet writes events as of old, the scheduler those of events.k8s.io."""
        now = self._context.clock.stamp()
        if self._host:
            return {
                "source": {"component": self._component, "host": self._host},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
                "eventTime": None,
                "reportingComponent": self._component,
                "reportingInstance": self._host,
            }
        return {
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": self._micro(),
            "action": action,
            "reportingComponent": self._component,
            "reportingInstance": f"{self._component}-sandbox",
        }

    def _more(self, known: Entry) -> Obj:
        if self._host:
            count = known.obj["count"] + 1
            return {"count": count, "lastTimestamp": self._context.clock.stamp()}
        count = known.obj.get("series", {}).get("count", 1) + 1
        return {"series": {"count": count, "lastObservedTime": self._micro()}}

    def _micro(self) -> str:
        return rfc3339_micro(self._context.clock.now())

    def _forget_old(self) -> None:
        limit = self._context.clock.now() - KEPT_SECONDS
        while self._ages and self._ages[0][0] < limit:
            _, namespace, name, key = self._ages.popleft()
            self._written.pop(key, None)
            entry = self._context.storage.get(kinds.EVENTS, namespace, name)
            if entry is not None:
                self._context.storage.remove(entry)
