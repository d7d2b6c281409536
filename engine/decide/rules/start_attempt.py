"""Steps 1 to 3 of an attempt: create the gated pod, create what it owns, record it."""

from dataclasses import replace
from datetime import datetime, timedelta

from engine.decide.actions import (
    Action,
    ConfirmDeleted,
    CreateDependents,
    CreatePod,
    Wait,
    WriteRecord,
    delete_pod_action,
)
from engine.decide.pull_cursor import images_of_nodes, policies_of_attempt
from engine.decide.record import Attempt, Record
from engine.decide.situation import (
    Pod,
    Situation,
    has_ended,
    held_by,
    is_terminating,
    name_of,
    uid_of,
)
from engine.status.outcome import Reason, State
from engine.times import parse_time

RETRY_DELAY, LONGEST_RETRY_DELAY = 5.0, 300.0
_FALLBACK = Reason.IMAGE_PULL_FAILED
_CONFIRMATION = timedelta(seconds=10)
"""After its grace: a kubelet that is there has told the end of a pod by then, a busy one too."""


def start_attempt(situation: Situation) -> Action | None:
    """None once the attempt's pod is in the record."""
    record = situation.run_record
    attempt = record.open_attempt
    if attempt is not None:
        return None if attempt.uid else _find_pod(situation, record, attempt)
    number = record.next_number
    leftover = _remove_leftover(situation, number)
    if leftover is not None:
        return leftover
    pod = situation.pod_of_attempt(number)
    if pod is not None:
        return _own_and_record(situation, record, number, pod)
    before = situation.predecessor()
    if before is not None and _is_unheard_of(situation, before[1]):
        return ConfirmDeleted(*before)
    at = _retry_at(record)
    if at is not None and situation.now < at:
        return Wait(at)
    policies = policies_of_attempt(situation.job, record.attempts)
    return CreatePod(number, policies, images_of_nodes(record.attempts, policies))


def _is_unheard_of(situation: Situation, uid: str) -> bool:
    """Whether only a watch says that the pod is gone, which it says of one without labels, too."""
    return situation.pod_of(uid) is None and uid not in situation.observed.deleted_uids


def _retry_at(record: Record) -> datetime | None:
    """When the attempt after a failure may start; a fallback to another policy needs no wait."""
    last = record.last
    if last is None or last.outcome is _FALLBACK or last.finished_at is None:
        return None
    retried = sum(1 for attempt in record.attempts if attempt.outcome is not _FALLBACK)
    return last.finished_at + timedelta(
        seconds=min(LONGEST_RETRY_DELAY, RETRY_DELAY * 2 ** (retried - 1))
    )


def _remove_leftover(situation: Situation, number: int) -> Action | None:
    """The pod of the attempt before goes first, so that two never run at once.

    Not so on a lost node: nobody there can confirm the end, and a retry was asked for. But a node
    from which a taint drives its pods may be there all the same, and is given the time it needs.
    """
    wanted = situation.pod_of_attempt(number)
    lost = {a.uid for a in situation.run_record.attempts if a.outcome is Reason.NODE_LOST}
    for pod in situation.other_pods(uid_of(wanted) if wanted else ""):
        if not (is_terminating(pod) and uid_of(pod) in lost):
            return delete_pod_action(situation, pod, "its attempt is over")
        overdue = parse_time(pod["metadata"]["deletionTimestamp"])
        if overdue is not None and situation.now < overdue + _CONFIRMATION:
            return Wait(overdue + _CONFIRMATION)
    return None


def _own_and_record(situation: Situation, record: Record, number: int, pod: Pod) -> Action:
    if is_terminating(pod) and not has_ended(pod):
        return Wait()
    known = situation.observed.dependents_ready | situation.observed.adopted
    if uid_of(pod) not in known and not has_ended(pod):
        policies = policies_of_attempt(situation.job, record.attempts)
        return CreateDependents(number, name_of(pod), uid_of(pod), policies)
    return WriteRecord(_started(situation, record, number, pod))


def _find_pod(situation: Situation, record: Record, attempt: Attempt) -> WriteRecord | None:
    """The pod of an attempt that 0.1 recorded before it created the pod, which then had no gate.

    If it is nowhere it may have run all the same, so none takes its place: it ends as one that
    somebody deleted.
    """
    pod = situation.pod_of_attempt(attempt.number)
    return WriteRecord(_started(situation, record, attempt.number, pod)) if pod else None


def _started(situation: Situation, record: Record, number: int, pod: Pod) -> Record:
    attempt = Attempt(number, name_of(pod), uid_of(pod), policies_of(pod), situation.now)
    gates = held_by(pod)
    return replace(
        record.with_attempt(attempt),
        state=State.QUEUED if gates else State.STARTING,
        reason=None,
        message=gates,
        queued_at=record.queued_at or situation.now,
    )


def policies_of(pod: Pod) -> dict[str, str]:
    """Pull policy of each container of a pod."""
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return {c["name"]: c["imagePullPolicy"] for c in containers if "imagePullPolicy" in c}
