"""How far a job's run is, by its record and its pods: what decides whether anything is needed."""

from collections.abc import Iterable
from typing import Any

from engine.api.model import Job
from engine.decide.record import Record
from engine.decide.rules.stamp_expiry import expiry_due
from engine.decide.situation import gate_position, has_ended
from engine.reconcile.memory import JobMemory

Pods = Iterable[dict[str, Any]]


def is_over(memory: JobMemory, source: str) -> bool:
    """Whether the run of this very spec has its outcome."""
    record = memory.record
    return (
        record is not None
        and record.source == source
        and record.spec_hash == memory.job.spec_hash
        and record.state.is_final
    )


def is_under_way(memory: JobMemory, pods: Pods) -> bool:
    """Whether nothing of this attempt is still to be created, so that no secret is needed."""
    record = memory.record
    if record is None or record.spec_hash != memory.job.spec_hash:
        return False
    attempt = record.open_attempt
    gated = any(gate_position(pod) is not None for pod in pods)
    return attempt is not None and not gated


def has_work(job: Job, record: Record, pods: Pods) -> bool:
    """Whether anything is left to do about the pods of a run that is over."""
    return any(not has_ended(pod) or expiry_due(job, record, pod) is not None for pod in pods)
