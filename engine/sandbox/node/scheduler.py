"""The scheduler: gates, selectors, preferred nodes, taints, room, and why not."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from engine.sandbox import kinds, quantity
from engine.sandbox.admission.quota import pod_resources
from engine.sandbox.node.recorder import Recorder

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.store import Change, Entry
    from engine.sandbox.values import Obj

_ENDED = ("Succeeded", "Failed")
_COUNTED = ("cpu", "memory")
_PODS = "pods"


class Scheduler:
    """Binds pods to a node as they come; those that don't fit wait for a change.

    Of the nodes that fit it takes the one that the pod prefers, else the one with the fewest pods.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._recorder = Recorder(context, "default-scheduler")
        self._waiting: dict[str, tuple[str, str]] = {}
        self._requests: dict[str, tuple[str, dict[str, Fraction]]] = {}
        """What each bound pod has requested, and of which node."""
        self._used: dict[str, dict[str, Fraction]] = {}
        context.storage.listen(self._on_change)

    def _on_change(self, change: Change) -> None:
        entry = change.entry
        if entry.kind is kinds.NODES:
            self._retry()
        if entry.kind is not kinds.PODS:
            return
        if change.type == "DELETED" or entry.obj["status"].get("phase") in _ENDED:
            self._waiting.pop(entry.uid, None)
            if (freed := self._requests.pop(entry.uid, None)) is not None:
                self._charge(*freed, -1)
                self._retry()
            return
        if node := entry.obj["spec"].get("nodeName"):
            self._waiting.pop(entry.uid, None)
            if entry.uid not in self._requests:
                held = pod_resources(entry.obj["spec"], "requests")
                self._requests[entry.uid] = node, held
                self._charge(node, held, 1)
        elif entry.obj["spec"].get("schedulingGates") or entry.uid in self._waiting:
            return
        elif not entry.obj["metadata"].get("deletionTimestamp"):
            self._waiting[entry.uid] = entry.key
            self._context.call_soon(lambda: self._schedule(entry.uid))

    def _charge(self, node: str, amounts: dict[str, Fraction], sign: int) -> None:
        used = self._used.setdefault(node, dict.fromkeys((*_COUNTED, _PODS), Fraction()))
        used[_PODS] += sign
        for name in _COUNTED:
            if name in amounts:
                used[name] += sign * amounts[name]

    def _retry(self) -> None:
        for uid in list(self._waiting):
            self._context.call_soon(lambda uid=uid: self._schedule(uid))

    def _schedule(self, uid: str) -> None:
        with self._context.storage.lock:
            key = self._waiting.get(uid)
            pod = self._context.storage.get(kinds.PODS, *key) if key else None
            if pod is None or pod.uid != uid or pod.obj["spec"].get("nodeName"):
                return
            spec = pod.obj["spec"]
            nodes = self._context.storage.entries(kinds.NODES)
            misfits = [(node, self._misfit(spec, node)) for node in nodes]
            fitting = [node for node, why in misfits if not why]
            if not fitting:
                self._refuse(pod, self._words(misfits, spec))
                return
            best = min(fitting, key=lambda node: (-preference(spec, node), self._pods_on(node)))
            bind(self._context, pod, best.name)
            where = f"{pod.namespace}/{pod.name}"
            words = f"Successfully assigned {where} to {best.name}"
            self._recorder.record(pod, "Normal", "Scheduled", words, action="Binding")

    def _pods_on(self, node: Entry) -> Fraction:
        return self._used.get(node.name, {}).get(_PODS, Fraction())

    def _misfit(self, spec: Obj, node: Entry) -> str:
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
        return self._no_room(spec, node)

    def _no_room(self, spec: Obj, node: Entry) -> str:
        allocatable, used = node.obj["status"]["allocatable"], self._used.get(node.name, {})
        if self._pods_on(node) >= int(allocatable["pods"]):
            return "Too many pods"
        wanted = pod_resources(spec, "requests")
        for name in _COUNTED:
            amount = wanted.get(name)
            if amount and used.get(name, 0) + amount > quantity.parse(allocatable[name]):
                return f"Insufficient {name}"
        return ""

    @staticmethod
    def _words(misfits: list[tuple[Entry, str]], spec: Obj) -> str:
        if not misfits:
            return "no nodes available to schedule pods"
        helps = [
            "No preemption victims found for incoming pod"
            if why.startswith("Insufficient") and _fits_alone(spec, node)
            else "Preemption is not helpful for scheduling"
            for node, why in misfits
        ]
        none = f"0/{len(misfits)} nodes are available: "
        return (
            f"{none}{_counted([why for _, why in misfits])}. no new claims to deallocate, "
            f"preemption: {none}{_counted(helps)}."
        )

    def _refuse(self, pod: Entry, words: str) -> None:
        condition = {
            **_scheduled(self._context, "False"),
            "observedGeneration": pod.obj["metadata"].get("generation", 1),
            "reason": "Unschedulable",
            "message": words,
        }
        old = pod.obj["status"].get("conditions", [])
        known: Obj = next((c for c in old if c["type"] == "PodScheduled"), {})
        if known.get("message") == words:
            return
        self._recorder.record(pod, "Warning", "FailedScheduling", words, action="Scheduling")
        others = [c for c in old if c["type"] != "PodScheduled"]
        status = {**pod.obj["status"], "conditions": [*others, condition]}
        obj = {**pod.obj, "status": status, "metadata": dict(pod.obj["metadata"])}
        self._context.storage.put(kinds.PODS, obj)


def preference(spec: Obj, node: Entry) -> int:
    """Sum of the weights of the pod's preferred node affinities that the node meets."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(int(term["weight"]) for term in terms if _meets(term["preference"], node))


def _meets(preference: Obj, node: Entry) -> bool:
    labels, fields = node.obj["metadata"].get("labels", {}), {"metadata.name": node.name}
    wanted = [(labels, one) for one in preference.get("matchExpressions") or ()]
    wanted += [(fields, one) for one in preference.get("matchFields") or ()]
    return all(_holds(one, have) for have, one in wanted)


def _holds(requirement: Obj, have: dict[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return key in have and have[key] in values
        case "NotIn":
            return key not in have or have[key] not in values
        case "Exists":
            return key in have
        case "DoesNotExist":
            return key not in have
        case _:
            return False


def _counted(words: list[str]) -> str:
    return ", ".join(sorted(f"{count} {why}" for why, count in Counter(words).items()))


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
