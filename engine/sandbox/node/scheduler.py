"""The scheduler of a cluster with one node: gates, selectors, taints, room, and why not."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from engine.sandbox import kinds, quantity
from engine.sandbox.admission.usage import pod_resources
from engine.sandbox.node.recorder import Recorder

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.store import Change, Entry
    from engine.sandbox.values import Obj

_ENDED = ("Succeeded", "Failed")
_COUNTED = ("cpu", "memory")


class Scheduler:
    """Binds pods to the node as they come; those that don't fit wait for a change."""

    def __init__(self, context: Context, node_name: str) -> None:
        self._context = context
        self._node_name = node_name
        self._recorder = Recorder(context, "default-scheduler")
        self._waiting: dict[str, tuple[str, str]] = {}
        self._requests: dict[str, dict[str, Fraction]] = {}
        self._used = dict.fromkeys(_COUNTED, Fraction())
        context.storage.listen(self._hear)

    def _hear(self, change: Change) -> None:
        entry = change.entry
        if entry.kind is kinds.NODES:
            self._retry()
        if entry.kind is not kinds.PODS:
            return
        if change.type == "DELETED" or entry.obj["status"].get("phase") in _ENDED:
            self._waiting.pop(entry.uid, None)
            if (freed := self._requests.pop(entry.uid, None)) is not None:
                self._charge(freed, -1)
                self._retry()
            return
        if entry.obj["spec"].get("nodeName"):
            self._waiting.pop(entry.uid, None)
            if entry.uid not in self._requests:
                held = self._requests[entry.uid] = pod_resources(entry.obj["spec"], "requests")
                self._charge(held, 1)
        elif entry.obj["spec"].get("schedulingGates") or entry.uid in self._waiting:
            return
        elif not entry.obj["metadata"].get("deletionTimestamp"):
            self._waiting[entry.uid] = entry.key
            self._context.soon(lambda: self._schedule(entry.uid))

    def _charge(self, amounts: dict[str, Fraction], sign: int) -> None:
        for name in _COUNTED:
            if name in amounts:
                self._used[name] += sign * amounts[name]

    def _retry(self) -> None:
        for uid in list(self._waiting):
            self._context.soon(lambda uid=uid: self._schedule(uid))

    def _schedule(self, uid: str) -> None:
        with self._context.storage.lock:
            key = self._waiting.get(uid)
            pod = self._context.storage.get(kinds.PODS, *key) if key else None
            if pod is None or pod.uid != uid or pod.obj["spec"].get("nodeName"):
                return
            node = self._context.storage.get(kinds.NODES, "", self._node_name)
            why = self._misfit(pod.obj["spec"], node)
            if why:
                self._refuse(pod, self._words(why, node, pod.obj["spec"]))
                return
            bind(self._context, pod, self._node_name)
            where = f"{pod.namespace}/{pod.name}"
            words = f"Successfully assigned {where} to {self._node_name}"
            self._recorder.note(pod, "Normal", "Scheduled", words, action="Binding")

    def _misfit(self, spec: Obj, node: Entry | None) -> str:
        if node is None:
            return "no nodes available to schedule pods"
        labels = node.obj["metadata"].get("labels", {})
        selector = spec.get("nodeSelector", {})
        if any(labels.get(key) != value for key, value in selector.items()):
            return "node(s) didn't match Pod's node affinity/selector"
        if node.obj["spec"].get("unschedulable"):
            return "node(s) were unschedulable"
        for taint in node.obj["spec"].get("taints", ()):
            if taint["effect"] in ("NoSchedule", "NoExecute") and not _tolerated(spec, taint):
                shown = f"{taint['key']}: {taint.get('value', '')}"
                return f"node(s) had untolerated taint {{{shown}}}"
        return self._no_room(spec, node.obj["status"]["allocatable"])

    def _no_room(self, spec: Obj, allocatable: Obj) -> str:
        if len(self._requests) >= int(allocatable["pods"]):
            return "Too many pods"
        wanted = pod_resources(spec, "requests")
        for name in _COUNTED:
            amount = wanted.get(name)
            if amount and self._used[name] + amount > quantity.parse(allocatable[name]):
                return f"Insufficient {name}"
        return ""

    @staticmethod
    def _words(why: str, node: Entry | None, spec: Obj) -> str:
        if node is None:
            return why
        helps = "Preemption is not helpful for scheduling"
        if why.startswith("Insufficient") and _fits_alone(spec, node):
            helps = "No preemption victims found for incoming pod"
        return (
            f"0/1 nodes are available: 1 {why}. no new claims to deallocate, preemption: 0/1 nodes "
            f"are available: 1 {helps}."
        )

    def _refuse(self, pod: Entry, words: str) -> None:
        condition = {
            **_scheduled(self._context, "False"),
            "observedGeneration": pod.obj["metadata"].get("generation", 1),
            "reason": "Unschedulable",
            "message": words,
        }
        old = pod.obj["status"].get("conditions", [])
        told: Obj = next((c for c in old if c["type"] == "PodScheduled"), {})
        if told.get("message") == words:
            return
        self._recorder.note(pod, "Warning", "FailedScheduling", words, action="Scheduling")
        others = [c for c in old if c["type"] != "PodScheduled"]
        status = {**pod.obj["status"], "conditions": [*others, condition]}
        obj = {**pod.obj, "status": status, "metadata": dict(pod.obj["metadata"])}
        self._context.storage.put(kinds.PODS, obj)


def _fits_alone(spec: Obj, node: Entry) -> bool:
    allocatable = node.obj["status"]["allocatable"]
    wanted = pod_resources(spec, "requests")
    return all(wanted.get(n, 0) <= quantity.parse(allocatable[n]) for n in _COUNTED)


def bind(context: Context, pod: Entry, node: str) -> Entry:
    """Give the Pod to a node."""
    old = pod.obj["status"].get("conditions", [])
    others = [c for c in old if c["type"] != "PodScheduled"]
    status = {**pod.obj["status"], "conditions": [*others, _scheduled(context, "True")]}
    spec = {**pod.obj["spec"], "nodeName": node}
    meta = dict(pod.obj["metadata"])
    return context.storage.put(
        kinds.PODS, {**pod.obj, "metadata": meta, "spec": spec, "status": status}
    )


def _scheduled(context: Context, status: str) -> Obj:
    return {
        "type": "PodScheduled",
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": context.clock.stamp(),
    }


def _tolerated(spec: Obj, taint: Obj) -> bool:
    for toleration in spec.get("tolerations", ()):
        key_fits = toleration.get("key", taint["key"]) == taint["key"]
        effect_fits = toleration.get("effect", taint["effect"]) == taint["effect"]
        value_fits = toleration.get("operator") == "Exists" or toleration.get(
            "value", ""
        ) == taint.get("value", "")
        if key_fits and effect_fits and value_fits:
            return True
    return False
