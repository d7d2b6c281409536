"""What another source made is refused by name, never overwritten."""

from engine.lifecycle.actions import ReportError
from engine.lifecycle.state import LifecycleState


def refuse_foreign(state: LifecycleState) -> ReportError | None:
    """Only if the record is another's; for pods see `resolve_unrecorded`."""
    record = state.record
    if record is None or record.source == state.source:
        return None
    return ReportError(
        f"job {state.job.key} belongs to source {record.source!r}, not to {state.source!r}"
    )
