"""A run begins once the jobs that its spec names in `dependsOn` have succeeded, or are over."""

from engine.lifecycle.actions import Action, WriteRecord
from engine.lifecycle.predecessors import waiting_words
from engine.lifecycle.rules.handle_rejected_record import remove_unrecorded
from engine.lifecycle.rules.resolve_unrecorded import resolve_unrecorded
from engine.lifecycle.state import LifecycleState
from engine.status.outcome import Outcome, Reason


def wait_for_dependencies(state: LifecycleState) -> Action | None:
    """Only for a run without an attempt. One that failed for want of another job waits again as
    soon as that job has a run to come.

    An engine that died may have made the pod when there was nothing to wait for: it goes.
    """
    record, others = state.run_record, state.observed.predecessors
    has_failed = record.reason is Reason.DEPENDENCY_FAILED
    if record.attempts or not others or (record.state.is_final and not has_failed):
        return None
    failure = next(filter(None, (one.failure for one in others)), "")
    if failure:
        outcome = Outcome(Reason.DEPENDENCY_FAILED, failure)
        return None if has_failed else WriteRecord(record.finished(outcome, state.now))
    words = waiting_words(others)
    if words and (removal := remove_unrecorded(state, words)) is not None:
        return removal
    if has_failed or (words and (record.message != words or record.queued_at)):
        return WriteRecord(record.queued(words))
    return (resolve_unrecorded(state) or state.wait()) if words else None
