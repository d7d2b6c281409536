"""What a running pod owns was changed or deleted under it: look, and put it back."""

from engine.decide.actions import RestoreDependents
from engine.decide.pull_cursor import policies_of_attempt
from engine.decide.situation import Situation, gate_position, is_finished, is_terminating


def repair_drift(situation: Situation) -> RestoreDependents | None:
    """Only while the pod needs them; a pod that has ended or is going needs nothing."""
    attempt = situation.run_record.open_attempt
    if attempt is None or attempt.uid not in situation.observed.touched:
        return None
    pod = situation.pod_of(attempt.uid)
    if pod is None or is_terminating(pod) or is_finished(pod) or gate_position(pod) is not None:
        return None
    policies = policies_of_attempt(situation.job, situation.run_record.attempts)
    return RestoreDependents(attempt.number, attempt.pod, attempt.uid, policies)
