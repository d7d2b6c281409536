"""The cluster, not the job, ended the pod: eviction, preemption, a lost node, a full node."""

from collections.abc import Mapping
from typing import Any

from engine.status.containers import main_state
from engine.status.outcome import Outcome, Reason

_REASONS: Mapping[str, Reason] = {
    "Evicted": Reason.EVICTED,
    "Preempting": Reason.PREEMPTED,
    "UnexpectedAdmissionError": Reason.EVICTED,
    "NodeAffinity": Reason.EVICTED,
    "NodeLost": Reason.NODE_LOST,
    "NodeShutdown": Reason.NODE_LOST,
    "Shutdown": Reason.NODE_LOST,
    "Terminated": Reason.NODE_LOST,
}
_NO_ROOM = "OutOf"
_CONDITION = "DisruptionTarget"
_KUEUE = "TerminationTarget"
"""Kueue sets it before it deletes a pod: kueue/pkg/controller/jobs/pod. Its message says why."""
_PREEMPTION = "PreemptionByScheduler"
_NODE_CAUSES = frozenset({"DeletionByPodGC", "DeletionByTaintManager"})


def read_disruption(pod: Mapping[str, Any]) -> Outcome | None:
    """Only for a pod that has failed: a condition alone announces what may still not happen."""
    if (pod.get("status") or {}).get("phase") != "Failed":
        return None
    return read_announced_disruption(pod)


def read_announced_disruption(pod: Mapping[str, Any]) -> Outcome | None:
    """What the cluster says it is about to do; final once the pod is being deleted.

    A lost node can't report a phase: its pods stay Running until the node is back, and their
    containers may go on there. The message says so.
    """
    status, main = pod.get("status") or {}, main_state(pod)
    if main is not None and main.terminated.get("exitCode") == 0:
        return None
    code = main.terminated.get("exitCode") if main else None
    named = status.get("reason", "")
    reason = _REASONS.get(named) or (Reason.EVICTED if named.startswith(_NO_ROOM) else None)
    if reason is not None:
        return Outcome(reason, status.get("message") or named, code)
    for condition in status.get("conditions") or ():
        if condition.get("type") in (_CONDITION, _KUEUE) and condition.get("status") == "True":
            words = condition.get("message") or condition.get("reason", "")
            cause = condition.get("reason")
            if cause not in _NODE_CAUSES:
                is_preempted = cause == _PREEMPTION or words.startswith("Preempted to ")
                return Outcome(Reason.PREEMPTED if is_preempted else Reason.EVICTED, words, code)
            node = (pod.get("spec") or {}).get("nodeName")
            if node and not (main and main.terminated):
                words = f"{words}; its containers may still run on node {node}"
            return Outcome(Reason.NODE_LOST, words, code)
    return None
