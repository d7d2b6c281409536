"""What another source made is refused by name, never overwritten."""

from engine.decide.actions import RejectForeign
from engine.decide.situation import Situation, name_of
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE


def refuse_foreign(situation: Situation) -> RejectForeign | None:
    """Only if the record, or a pod of this name, is another's."""
    record = situation.record
    if record is not None and record.source != situation.source:
        return RejectForeign(
            f"job {situation.job.key} belongs to source {record.source!r}, "
            f"not to {situation.source!r}"
        )
    for pod in situation.observed.pods:
        labels = pod["metadata"].get("labels") or {}
        if labels.get(MANAGED_BY) != MANAGER:
            return RejectForeign(f"pod {name_of(pod)} is not one of the engine's")
        if labels.get(SOURCE) != situation.source:
            return RejectForeign(
                f"pod {name_of(pod)} belongs to source {labels.get(SOURCE)!r}, "
                f"not to {situation.source!r}"
            )
    return None
