"""Report what becomes of a job's attempts, once: as events of ours and as Events on its pods."""

from collections.abc import Callable

from msgspec import Struct

from engine.api.model import Job
from engine.cluster.client import Client
from engine.cluster.events import record_event
from engine.lifecycle.pull_fallback import told_failures
from engine.lifecycle.record import FIRST_RUN, Attempt, Record
from engine.lifecycle.retry import time_left
from engine.lifecycle.state import LifecycleState, changed_labels, name_of, uid_of
from engine.reconcile.job_store import TrackedJob
from engine.refs import Ref
from engine.status.containers import has_started
from engine.status.outcome import EventReason, Reason, State
from engine.status.waiting import pull_errors_beside_main
from engine.telemetry.events import (
    AttemptFailed,
    Emit,
    LogEnd,
    Notice,
    PullPolicyFallback,
    StateChanged,
)
from engine.wellknown import ORPHANED_SINCE

_LINES = 20
"""Of the last words, so many are printed."""
_NO_FAILURE = (Reason.SUCCEEDED, Reason.SUPERSEDED, Reason.CANCELLED)


class AttemptReporter(Struct, frozen=True):
    """Guarantees: what is reported is in the record already, and nothing is reported of a write
    that did not end an attempt. Events on pods are best effort; their names make a second one
    impossible.
    """

    client: Client
    emit: Emit
    on_pods: bool
    """Whether Events are written on pods, too."""
    on_attempt_end: Callable[[Record, Attempt], object]
    """Called once for each attempt, before its pod is deleted."""

    def report_record(self, tracked: TrackedJob, before: Record | None, record: Record) -> None:
        """`before` and `record` are the record as it was and as it has been written now."""
        if before is not None and ORPHANED_SINCE in before.annotations.keys() - record.annotations:
            self.emit(Notice("its spec is back; its record ages no more", tracked.job.key))
        attempt = record.last
        if attempt is None or attempt.is_open or _was_reported(before, record, attempt):
            self._report_state(tracked, record.state, record, record.message)
            return
        if attempt.failures and not (attempt.exhausted or record.state.is_final):
            self._report_fallback(tracked.job, record, attempt)
        elif attempt.outcome not in _NO_FAILURE:
            self._report_failure(tracked.job, record.position(attempt), attempt)
        self._report_state(tracked, record.state, record, record.message)
        self.on_attempt_end(record, attempt)

    def report_waiting(self, tracked: TrackedJob, state: LifecycleState) -> None:
        """What no record says: that the open attempt's pod runs, or the state of a job without one.

        Also pods that are left alone, and one that no watch follows any more.
        """
        record = state.run_record
        attempt = record.open_attempt
        pod = state.pod_of(attempt.uid) if attempt and attempt.uid else None
        if pod is not None and has_started(pod):
            self._report_state(tracked, State.RUNNING, record, "")
        if (unrecorded := tracked.unrecorded) is not None:
            self._report_state(tracked, unrecorded.state, unrecorded, unrecorded.message)
        notes = dict[str, str]()
        for one in pull_errors_beside_main(pod or {}):
            place = (attempt.uid if attempt else "", one.name)
            cause = state.observed.pull_causes.get(place, one.message)
            words = f"container {one.name} can't be started again while main runs: {cause}"
            notes["/".join(place)] = words
        for pod in state.unowned_pods():
            notes[uid_of(pod)] = f"pod {name_of(pod)} is in no record of this job; it is left alone"
        if (pod := state.unlabelled_pod()) is not None:
            labels = ", ".join(changed_labels(pod, state.source))
            words = f"labels of pod {name_of(pod)} were changed ({labels})"
            notes[uid_of(pod)] = f"{words}; the engine reads it by its name"
        for uid in notes.keys() - tracked.reported_pods:
            self.emit(Notice(notes[uid], tracked.job.key, warning=True))
        tracked.reported_pods |= notes.keys()

    def report_end(self, tracked: TrackedJob) -> None:
        """The end of a run that was followed, where another hand wrote it down: that of the TTL
        rule, or of a person.
        """
        record = tracked.record
        if record is not None and record.state.is_final and tracked.reported_state:
            is_new = self._report_state(tracked, record.state, record, record.message)
            if is_new and record.last is not None:
                self.on_attempt_end(record, record.last)

    def _report_state(
        self, tracked: TrackedJob, state: State, record: Record, message: str
    ) -> bool:
        """A line per change of state, and per wait for a registry or a retry, not per write;
        whether there was one.
        """
        last, waits_until = record.last, None
        number = record.position(last) if last else 0
        is_fallback = last is not None and bool(last.failures) and not last.exhausted
        if last is not None and state is record.state and not (state.is_final or is_fallback):
            waits_until = last.gives_up_at or last.retry_at
            message += time_left(record, self.client.now()) if message else ""
        shown = number if not state.is_final else 0
        reported = (record.run, state, shown, record.reason, waits_until)
        # A record that follows an edit of its object says of a pod that runs what it said before.
        runs = (record.run, State.RUNNING, number)
        goes_on = state is State.STARTING and not waits_until
        if tracked.reported_state == reported or (goes_on and tracked.reported_state[:3] == runs):
            return False
        tracked.reported_state = reported
        since = record.queued_at if state is State.QUEUED else None
        attempt = record.open_attempt
        why = record.start_cause if attempt and state is State.STARTING else ""
        key, reason = tracked.job.key, record.reason
        self.emit(StateChanged(key, state, reason, message, number, since, why))
        if attempt is not None and why == record.cause and why not in ("", FIRST_RUN):
            self._write_event(tracked.job, attempt, EventReason.STARTED, why)
        return True

    def _report_failure(self, job: Job, position: int, attempt: Attempt) -> None:
        reason = attempt.outcome or Reason.CANCELLED
        self.emit(AttemptFailed(job.key, position, attempt.pod, reason, attempt.message))
        text = f"{reason}: {attempt.message}" if attempt.message else reason.value
        for words in attempt.last_words:
            lines = "\n".join(words.message.splitlines()[-_LINES:])
            self.emit(LogEnd(job.key, position, attempt.pod, words.container, lines))
            text += f"\n{words.message}"
        self._write_event(job, attempt, EventReason.ATTEMPT_FAILED, text)

    def _report_fallback(self, job: Job, record: Record, attempt: Attempt) -> None:
        after, left = record.next_policies(job), time_left(record, self.client.now())
        failed: dict[tuple[str, str], str] = {}
        told = [*told_failures(record.attempts)]
        newest = {one.container: words for at, one, words in told if at == len(record.attempts)}
        for failure in attempt.failures:
            before = attempt.policies.get(failure.container, "default")
            first = failed.setdefault((failure.image, before), failure.container)
            change = PullPolicyFallback(
                job.key,
                record.position(attempt),
                failure.container,
                failure.image,
                before,
                after.get(failure.container, "default"),
                newest.get(failure.container, f"as for container {first}") + left,
                failure.pull_class,
            )
            self.emit(change)
            text = (
                f"{change.container}: pull policy {change.before} failed, next is {change.after}: "
                f"{change.message}"
            )
            note = f".{change.container}"
            self._write_event(job, attempt, EventReason.PULL_POLICY_FALLBACK, text, note)

    def _write_event(
        self, job: Job, attempt: Attempt, reason: EventReason, text: str, note: str = ""
    ) -> None:
        if self.on_pods and attempt.uid:
            pod, now = Ref("Pod", job.namespace, attempt.pod), attempt.finished_at
            now = now or self.client.now()
            record_event(
                self.client, pod, attempt.uid, reason=reason, message=text, now=now, suffix=note
            )


def _was_reported(before: Record | None, record: Record, attempt: Attempt) -> bool:
    """Whether the attempt was over before this write, which was about something else then."""
    if before is None or before.spec_hash != record.spec_hash:
        return False
    return any(a.number == attempt.number and a.outcome is not None for a in before.attempts)
