"""A record whose spec is back ages no longer."""

from engine.lifecycle.actions import WriteRecord
from engine.lifecycle.orphan import without_mark
from engine.lifecycle.state import LifecycleState
from engine.wellknown import ORPHANED_SINCE


def clear_orphan_mark(state: LifecycleState) -> WriteRecord | None:
    """Comes before every other step, so that the record isn't deleted meanwhile."""
    record = state.record
    if record is None or ORPHANED_SINCE not in record.annotations:
        return None
    return WriteRecord(without_mark(record))
