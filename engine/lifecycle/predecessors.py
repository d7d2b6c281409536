"""The jobs that one waits for, as their own records show them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.api.dependencies import Needs
from engine.api.model import Job
from engine.lifecycle.record import Record
from engine.refs import JobKey
from engine.status.outcome import Reason, State

_NAMED = 3
"""A message has no more names."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A job that comes first."""

    key: JobKey
    may_fail: bool
    """Whether it is enough that it is over."""
    ended: Record | None
    """Its record, once the run of its present revision is over."""

    @property
    def failure(self) -> str:
        """Why the job that waits for it can't run; "" if it can, or may yet."""
        if self.ended is None or self.may_fail or self.ended.state is State.SUCCEEDED:
            return ""
        if self.ended.state is State.CANCELLED:
            return f"{self.key} was cancelled"
        return f"{self.key} failed ({self.ended.reason})"


@dataclass(frozen=True, slots=True)
class JobOrder:
    """The order of a source's jobs, and how far they are."""

    jobs: Mapping[JobKey, Job]
    needs: Needs
    record_of: Callable[[JobKey], Record | None]
    source: str

    def predecessors(self, key: JobKey) -> tuple[Predecessor, ...]:
        """In the order of the spec."""
        return tuple(
            Predecessor(one, may_fail, self.ended(one) if self._is_settled(one) else None)
            for one, may_fail in self.needs.get(key, ())
        )

    def ended(self, key: JobKey) -> Record | None:
        """The record of a job whose present revision has an outcome."""
        job, record = self.jobs.get(key), self.record_of(key)
        if job is None or record is None or record.source != self.source:
            return None
        return record if record.state.is_final and record.is_of(job) else None

    def _is_settled(self, key: JobKey) -> bool:
        """Whether its end stays: what failed for want of another job is tried again with that."""
        todo, seen = [key], {key}
        while todo:
            at = todo.pop()
            record = self.ended(at)
            if record is not None and record.reason is not Reason.DEPENDENCY_FAILED:
                if at == key or record.state is not State.SUCCEEDED:
                    return True
            elif record is not None:
                found = {one.key for one in self.needs.get(at, ()) if not one.may_fail} - seen
                seen |= found
                todo += found
        return False


def waiting_words(predecessors: Sequence[Predecessor]) -> str:
    """What a job waits for; "" for nothing."""
    names = [str(one.key) for one in predecessors if one.ended is None]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"waits for {', '.join(names[:_NAMED])}{more}" if names else ""
