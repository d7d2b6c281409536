"""A pod with a name of ours that is in no record: made anew, or refused by name.

An engine records a pod before it removes the gate. So a pod that is still gated never ran: its
engine died before it could record it, or another user made it to get a Secret. Such a pod is
deleted and made anew. A pod without the gate was in a record once, or was never the engine's. It is
refused by name: nothing is guessed, compared or taken over.

Another engine may be about to record the pod that it made, and gets a moment for it. Then the
record is written first, so that one of the two writes fails. A pod in a record is never deleted
here, and a pod that is given up here is never recorded.
"""

from datetime import datetime, timedelta
from itertools import filterfalse

from msgspec.structs import replace

from engine.lifecycle.actions import Action, DeletePod, RefreshPod, ReportError, Wait, WriteRecord
from engine.lifecycle.state import (
    LifecycleState,
    Pod,
    foreign_label,
    gate_position,
    has_ended,
    is_terminating,
    name_of,
    run_of,
    uid_of,
)
from engine.refs import pod_name

CLAIM_TIME = timedelta(seconds=3)
"""What an engine gets from the creation of its pod to the record."""
NEVER_RAN = "it is in no record, so it never ran"


def resolve_unrecorded(state: LifecycleState) -> Action | None:
    """Only before an attempt is made; beside one that is under way others are left alone.

    What looks like a stranger's may be in a record that is newer than the one that was read.
    """
    record = state.run_record
    for pod in state.unowned_pods():
        if not state.is_unrecorded(pod):
            return RefreshPod(name_of(pod), uid_of(pod))
    if record.open_attempt is not None:
        return None
    wanted = pod_name(state.job.name, state.job.run, record.next_number)
    unknown = list(filterfalse(state.is_owned, state.observed.pods))
    for pod in unknown:
        if gate_position(pod) is not None and (action := discard(state, pod)) is not None:
            return action
    # Without a record of any attempt, and with no pod of its own yet, the engine can't have begun.
    has_begun = any(run.attempts for run in (record, *record.history))
    own = [pod for pod in state.observed.pods if state.is_owned(pod) and not has_ended(pod)]
    knows_nothing = not has_begun and not own
    for pod in unknown:
        if name_of(pod) == wanted or (knows_nothing and _may_be_the_jobs(state, pod)):
            if gate_position(pod) is None and not state.is_unrecorded(pod):
                return RefreshPod(name_of(pod), uid_of(pod))
            return _make_way(state, pod)
    return None


def _may_be_the_jobs(state: LifecycleState, pod: Pod) -> bool:
    """Without a record, an ungated pod of the job's name may be a run that was recorded once."""
    is_gated = gate_position(pod) is not None
    return not is_gated and (run_of(pod) == state.job.run or not has_ended(pod))


def discard(state: LifecycleState, pod: Pod) -> Action | None:
    """Give up a gated pod in no record; None for one that is left alone."""
    uid, record = uid_of(pod), state.run_record
    if foreign_label(pod, state.source) or is_terminating(pod):
        return None
    claimable = datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) + CLAIM_TIME
    if state.now < claimable:
        return state.wait(claimable)
    if not state.is_fresh(uid):
        return RefreshPod(name_of(pod), uid)
    if record.discarded != uid:
        number = int(name_of(pod).rpartition("-")[2])
        given_up = record.with_discarded(uid, run_of(pod), number)
        return WriteRecord(replace(given_up, queued_at=record.queued_at or state.now))
    return DeletePod(name_of(pod), uid, 0, NEVER_RAN, pod["metadata"].get("resourceVersion", ""))


def removal_hint(pod: Pod) -> str:
    name, namespace = name_of(pod), pod["metadata"]["namespace"]
    return f"kubectl delete pod {name} -n {namespace} removes it; or rename the job"


def _make_way(state: LifecycleState, pod: Pod) -> ReportError | Wait:
    """Wait for a pod that is being deleted and that the watch follows; refuse any other."""
    name, removal = name_of(pod), removal_hint(pod)
    if foreign := foreign_label(pod, state.source):
        return ReportError(foreign, removal)
    words = f"pod {name} has this job's name and is in no record of it"
    if not is_terminating(pod):
        return ReportError(words, removal)
    if pod["metadata"].get("finalizers"):
        held = "its finalizer has to go before the pod does; or rename the job"
        return ReportError(f"{words}, and a finalizer keeps it there", held)
    return state.wait()
