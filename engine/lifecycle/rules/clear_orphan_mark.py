"""A record whose spec is back ages no longer."""

from msgspec.structs import replace

from engine.lifecycle.actions import WriteRecord
from engine.lifecycle.state import LifecycleState
from engine.wellknown import ORPHANED_SINCE


def clear_orphan_mark(state: LifecycleState) -> WriteRecord | None:
    """Comes before every other step, so that the record isn't deleted meanwhile."""
    record = state.record
    if record is None or ORPHANED_SINCE not in record.annotations:
        return None
    if record.version in state.observed.given_up:
        return None
    kept = {k: v for k, v in record.annotations.items() if k != ORPHANED_SINCE}
    return WriteRecord(replace(record, annotations=kept))
