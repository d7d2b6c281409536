"""The jobs that one waits for, as their own records show them."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from engine.api.dependencies import Needs
from engine.api.model import Job
from engine.lifecycle.record import Record
from engine.refs import JobKey
from engine.status.outcome import Reason, State

_NAMED = 3


class Predecessor(Struct, frozen=True):
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


class JobOrder(Struct, frozen=True):
    """The order of a source's jobs, and how far they are."""

    jobs: Mapping[JobKey, Job]
    needs: Needs
    record_of: Callable[[JobKey], Record | None]
    source: str

    def predecessors(self, key: JobKey) -> tuple[Predecessor, ...]:
        """In the order of the spec."""
        return tuple(
            Predecessor(one.key, one.may_fail, self._settled(one.key))
            for one in self.needs.get(key, ())
        )

    def ended(self, key: JobKey) -> Record | None:
        """The record of a job whose present revision has an outcome."""
        job, record = self.jobs.get(key), self.record_of(key)
        if job is None or record is None or record.source != self.source:
            return None
        return record if record.state.is_final and record.is_of(job) else None

    def _settled(self, key: JobKey) -> Record | None:
        """The same, if that end stays: what failed for want of another job may run with it."""
        first = self.ended(key)
        if first is None or first.reason is not Reason.DEPENDENCY_FAILED:
            return first
        todo, seen = [key], {key}
        while todo:
            at = todo.pop()
            record = self.ended(at)
            if record is not None and record.reason is Reason.DEPENDENCY_FAILED:
                found = {one.key for one in self.needs.get(at, ()) if not one.may_fail} - seen
                seen |= found
                todo += found
            elif record is not None and record.state is not State.SUCCEEDED:
                return first
        return None


def waiting_words(predecessors: Sequence[Predecessor]) -> str:
    """What a job waits for; "" for nothing.

    Of many the last one is named alone: they end in about their order, and each change is a write.
    """
    names = [str(one.key) for one in predecessors if one.ended is None]
    if len(predecessors) > _NAMED and len(names) > 1:
        names = [f"{names[-1]} and others"]
    return f"waits for {', '.join(names)}" if names else ""
