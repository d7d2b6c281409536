"""What another source made is refused by name, never overwritten."""

from engine.lifecycle.actions import RejectForeign
from engine.lifecycle.state import LifecycleState


def refuse_foreign(state: LifecycleState) -> RejectForeign | None:
    """Only if the record is another's; for pods see `resolve_unrecorded`."""
    record = state.record
    if record is None or record.source == state.source:
        return None
    return RejectForeign(
        f"job {state.job.key} belongs to source {record.source!r}, not to {state.source!r}"
    )
