"""The cluster, not the job, ended the pod: eviction, preemption, a lost node."""

from collections.abc import Mapping
from typing import Any

from engine.status.containers import main_state
from engine.status.outcome import Outcome, Reason

_REASONS: Mapping[str, Reason] = {
    "Evicted": Reason.EVICTED,
    "Preempting": Reason.EVICTED,
    "UnexpectedAdmissionError": Reason.EVICTED,
    "NodeLost": Reason.NODE_LOST,
    "NodeShutdown": Reason.NODE_LOST,
    "Shutdown": Reason.NODE_LOST,
    "Terminated": Reason.NODE_LOST,
}
_CONDITION = "DisruptionTarget"
_NODE_CAUSES = frozenset({"DeletionByPodGC", "DeletionByTaintManager"})


def read_disruption(pod: dict[str, Any]) -> Outcome | None:
    """Only for a pod that has ended: a condition alone announces what may still not happen."""
    status = pod.get("status") or {}
    main = main_state(pod)
    if status.get("phase") != "Failed" or (main and main.terminated.get("exitCode") == 0):
        return None
    code = main.terminated.get("exitCode") if main else None
    if (reason := _REASONS.get(status.get("reason", ""))) is not None:
        return Outcome(reason, status.get("message") or status["reason"], code)
    for condition in status.get("conditions") or ():
        if condition.get("type") == _CONDITION and condition.get("status") == "True":
            lost = condition.get("reason") in _NODE_CAUSES
            words = condition.get("message") or condition.get("reason", "")
            return Outcome(Reason.NODE_LOST if lost else Reason.EVICTED, words, code)
    return None
