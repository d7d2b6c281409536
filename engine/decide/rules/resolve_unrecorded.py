"""A pod with a name of ours that is in no record: made anew, adopted, or refused by name.

An engine records a pod before it removes the gate. So one that is still gated never ran: an engine
died before it could record it, or somebody made it to get a Secret; either way it is deleted, and
made anew. One without the gate was recorded once, and somebody deleted the record, or it was never
the engine's: what would be created tells, since labels don't.

Another engine may be about to record the pod that it made. It is given a moment; after that the
record is written first, so that of the two writes one fails: a pod that is in a record is never
deleted here, and one that is given up here never recorded.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from engine.decide.actions import (
    Action,
    AdoptPod,
    DeletePod,
    RefreshPod,
    RejectForeign,
    Wait,
    WriteRecord,
)
from engine.decide.pull_cursor import policies_of_attempt
from engine.decide.rules.start_attempt import policies_of
from engine.decide.situation import (
    Pod,
    Situation,
    foreign_label,
    gate_position,
    is_finished,
    is_terminating,
    name_of,
    number_of,
    run_of,
    uid_of,
)
from engine.refs import pod_name

CLAIM_TIME = timedelta(seconds=3)
"""What an engine gets from the creation of its pod to the record."""
NEVER_RAN = "it is in no record, so it never ran"
_REMOVE = "remove it, or rename the job"


def resolve_unrecorded(situation: Situation) -> Action | None:
    """Only before an attempt is made; beside one that is under way others are left alone.

    What looks like a stranger's may be in a record that is newer than the one that was read.
    """
    record, strangers = situation.run_record, situation.strangers()
    if strangers and not any(situation.is_fresh(uid_of(pod)) for pod in strangers):
        return RefreshPod(name_of(strangers[0]), uid_of(strangers[0]))
    if record.open_attempt is not None:
        return None
    wanted = pod_name(situation.job.name, situation.job.run, record.next_number)
    unknown = [pod for pod in situation.observed.pods if not situation.is_ours(pod)]
    for pod in unknown:
        if gate_position(pod) is not None:
            action = _discard(situation, pod, is_wanted=name_of(pod) == wanted)
            if action is not None:
                return action
    ungated = [pod for pod in unknown if gate_position(pod) is None]
    if situation.record is None and len(unknown) == len(situation.observed.pods):
        return _adopt_latest(situation, ungated)
    named = next((pod for pod in ungated if name_of(pod) == wanted), None)
    return _adopt(situation, named) if named is not None else None


def is_discardable(situation: Situation, pod: Pod) -> bool:
    """Whether the pod never ran, and says that it is of this source."""
    return gate_position(pod) is not None and not foreign_label(pod, situation.source)


def _discard(situation: Situation, pod: Pod, *, is_wanted: bool) -> Action | None:
    name, uid, record = name_of(pod), uid_of(pod), situation.run_record
    foreign = foreign_label(pod, situation.source)
    if foreign or is_terminating(pod):
        if not is_wanted:
            return None
        if foreign:
            return RejectForeign(foreign)
        if pod["metadata"].get("finalizers"):
            words = f"pod {name} is in no record of this job, and a finalizer keeps it there"
            return RejectForeign(words, _REMOVE)
        return Wait()
    claimable = datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) + CLAIM_TIME
    if is_wanted and situation.now < claimable:
        return Wait(claimable)
    if not situation.is_fresh(uid):
        return RefreshPod(name, uid)
    if record.discarded != uid:
        since = record.queued_at or situation.now
        return WriteRecord(replace(record, queued_at=since, discarded=uid))
    return DeletePod(name, uid, 0, NEVER_RAN, pod["metadata"].get("resourceVersion", ""))


def _adopt_latest(situation: Situation, pods: list[Pod]) -> Action | None:
    """Without a record any of them may be the job's, and the latest attempt is the one that is."""
    for pod in pods:
        if run_of(pod) != situation.job.run and not is_finished(pod):
            words = f"pod {name_of(pod)} is of another run of this job, and in no record of it"
            return RejectForeign(words, "wait for its end, or remove it")
    own = [pod for pod in pods if run_of(pod) == situation.job.run]
    return _adopt(situation, max(own, key=number_of)) if own else None


def _adopt(situation: Situation, pod: Pod) -> Action:
    """What a quota keeps from being tried waits for its turn, as a create does."""
    foreign = foreign_label(pod, situation.source)
    if foreign:
        return RejectForeign(foreign)
    rejection = situation.observed.rejection
    if rejection is not None and situation.now < rejection.retry_at:
        return Wait(rejection.retry_at)
    policies = _policies(situation, pod)
    return AdoptPod(number_of(pod), name_of(pod), uid_of(pod), policies)


def _policies(situation: Situation, pod: Pod) -> dict[str, str]:
    """Without a record nobody knows which policies the attempt had come to."""
    job, own = situation.job, policies_of(pod)
    return {
        name: own[name] if own.get(name) in job.policies[name] else policy
        for name, policy in policies_of_attempt(job, situation.run_record.attempts).items()
    }
