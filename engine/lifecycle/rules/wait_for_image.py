"""An attempt whose image another job pulls first waits for it, without a pod; see `PullScout`.

The record says so only once that takes long: most images are there before anybody looks. The status
of a JobSpec object that says already that a quota has no room stays as it is.
"""

from datetime import timedelta

from engine.lifecycle.actions import Action, WriteRecord
from engine.lifecycle.pull_fallback import fall_back_without_pod
from engine.lifecycle.record import Record
from engine.lifecycle.state import LifecycleState
from engine.status.outcome import Reason
from engine.times import earliest

_RECORDED_AFTER = timedelta(seconds=5)


def wait_for_image(state: LifecycleState, record: Record) -> Action | None:
    """Asked just before the pod would be created. What has failed for another job has failed."""
    holds = state.observed.image_holds
    if any(hold.failure is not None for hold in holds):
        return fall_back_without_pod(state)
    if not holds:
        return None
    hold, due = holds[0], earliest(*(one.due for one in holds))
    recorded_at = hold.since + _RECORDED_AFTER
    if record.reason is Reason.WAITING_FOR_IMAGE or (state.job.object and record.refused):
        return state.wait(due)
    if state.now < recorded_at:
        return state.wait(due, recorded_at)
    words = f"image {hold.image} is pulled by job {hold.scout} first"
    since = record.queued_at or state.now
    return WriteRecord(record.queued(words, since, Reason.WAITING_FOR_IMAGE))
