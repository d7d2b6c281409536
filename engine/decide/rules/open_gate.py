"""Step 4: the pod is owned from and recorded, let it run."""

from dataclasses import replace
from datetime import timedelta

from engine.decide.actions import Action, CreateDependents, RemoveSchedulingGate, Wait, WriteRecord
from engine.decide.pull_cursor import policies_of_attempt
from engine.decide.rules.close_attempt import close, waiting_since
from engine.decide.situation import Situation, gate_position, is_terminating, name_of, uid_of
from engine.status.outcome import Outcome, Reason

SHARE = 0.1


def open_gate(situation: Situation) -> Action | None:
    """An engine that died in between may have left less than it recorded: look again first.

    Nor was its absence the pod's time to start: if that took a share of it, count from now on.
    A pod that refers to a Secret that isn't there could only wait for it on a node: it ends here.
    """
    attempt = situation.run_record.open_attempt
    pod = situation.pod_of(attempt.uid) if attempt else None
    if attempt is None or pod is None:
        return None
    position = gate_position(pod)
    if position is None:
        return None
    if is_terminating(pod):
        return Wait()
    if uid_of(pod) not in situation.observed.dependents_ready:
        policies = policies_of_attempt(situation.job, situation.run_record.attempts)
        return CreateDependents(attempt.number, name_of(pod), uid_of(pod), policies)
    missing = situation.observed.secrets_missing.get(uid_of(pod))
    if missing is not None:
        return close(situation, attempt, Outcome(Reason.CONTAINER_CONFIG_ERROR, missing))
    spent = situation.now - waiting_since(attempt, pod)
    if spent > timedelta(seconds=SHARE * situation.job.start_timeout):
        claim = replace(attempt, claimed_at=situation.now)
        return WriteRecord(situation.run_record.with_attempt(claim))
    return RemoveSchedulingGate(name_of(pod), uid_of(pod), *position)
