"""What a job waits for, and what comes next: two sentences without their full stops."""

from engine.inspect.view import JobView
from engine.lifecycle.observed_status import ObservedStatus, read_wait
from engine.lifecycle.record import Record
from engine.lifecycle.state import Pod, gate_position, is_terminating
from engine.status.containers import has_started


def next_step(view: JobView, *, has_leader: bool | None) -> tuple[str, str] | None:
    """None without a record that can be read.

    `has_leader`: whether an engine holds the Lease of the job's source; None if that is unknown.
    """
    record, status = view.record, view.status
    if record is None or status is None:
        return None
    if record.state.is_final:
        again = f"nothing, until its spec changes or engine rerun {record.key}"
        return "nothing: the job is over", again
    waits_for, following = _under_way(record, status, view.pod, str(view.queue or ""))
    if has_leader is False:
        following = "nothing, until an engine runs: engine reconcile"
    return waits_for, following


def _under_way(
    record: Record, status: ObservedStatus, pod: Pod | None, queue: str
) -> tuple[str, str]:
    attempt = record.open_attempt
    if attempt is None or not attempt.uid:
        if queue:
            return f"room in a quota, {queue}: {record.message}", "the engine retries"
        number = record.next_number
        return f"an engine to create the pod of attempt {number}", f"attempt {number} starts"
    if not status.is_recorded:
        waits_for = f"an engine to record how attempt {attempt.number} ended"
        return waits_for, f"{status.reason} is recorded"
    if pod is None:
        return f"an engine to look for pod {attempt.pod}", "its outcome is recorded"
    if is_terminating(pod):
        return "the end of its pod, which is being deleted", "its outcome is recorded"
    if has_started(pod):
        return "the end of its main container", "its outcome is recorded"
    if gate_position(pod) is not None:
        return "an engine to create what the pod owns, and to open its gate", "the pod starts"
    return read_wait(pod), "its containers start, or the attempt fails"
