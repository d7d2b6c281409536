"""What a job waits for, and what comes next: in words, for people."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.decide.prune.rule import counts_from_scheduling
from engine.decide.prune.ttl import read_term
from engine.decide.record import Record
from engine.decide.situation import Pod, gate_position, has_ended, held_by, is_terminating
from engine.decide.standing import Standing, read_wait
from engine.status.containers import has_started
from engine.status.start import scheduled_at
from engine.status.waiting import pull_errors
from engine.times import format_time, parse_time

_NOBODY = "nothing, until an engine runs: engine reconcile"


@dataclass(frozen=True, slots=True)
class Outlook:
    """Two sentences without their full stops."""

    waits_for: str
    next: str


def read_outlook(
    record: Record, standing: Standing, pod: Pod | None, *, is_followed: bool | None, queue: str
) -> Outlook:
    """`pod` is that of the last attempt; `queue` its place in the line for a quota, "" for none.

    `is_followed`: whether an engine holds the Lease of its source; None if nobody can tell.
    """
    if record.state.is_final:
        again = f"nothing, until its spec changes or engine rerun {record.key}"
        return Outlook("nothing: the job is over", f"{again}{_expiry(pod)}")
    waits_for, following = _under_way(record, standing, pod, queue)
    if is_followed is False:
        goes_on = pod is not None and not has_ended(pod) and gate_position(pod) is None
        following = _NOBODY + ("; its pod goes on by itself" if goes_on else "")
    return Outlook(waits_for, following)


def _under_way(record: Record, standing: Standing, pod: Pod | None, queue: str) -> tuple[str, str]:
    attempt = record.open_attempt
    if attempt is None or not attempt.uid:
        if queue:
            return f"room in a quota, {queue}: {record.message}", "an engine asks again by itself"
        number = record.next_number
        return f"an engine to create the pod of attempt {number}", f"attempt {number} starts"
    if not standing.is_recorded:
        end = standing.reason or standing.state
        again = f", unless its retry allows attempt {attempt.number + 1}"
        following = f"it ends as {end}{again if standing.may_be_retried else ''}"
        return f"an engine to record how attempt {attempt.number} ended", following
    if pod is None:
        return f"an engine to look for pod {attempt.pod}", "its end is recorded"
    if is_terminating(pod):
        return "the end of its pod, which is being deleted", "its end is recorded"
    if has_started(pod):
        return "the end of its main container", f"its outcome is recorded{_deadline(pod)}"
    if gate_position(pod) is not None:
        return "an engine to create what the pod owns, and to open its gate", "the pod starts"
    waits_for = read_wait(pod)
    if held_by(pod):
        return waits_for, "its clocks stand still until nobody holds it"
    if next(pull_errors(pod), None) is not None:
        return waits_for, "an attempt with the next pull policy; with none left ImagePullFailed"
    return waits_for, "its containers start; StartTimeout once its startTimeout is over"


def _deadline(pod: Pod) -> str:
    seconds = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    start = parse_time((pod.get("status") or {}).get("startTime"))
    if not isinstance(seconds, int) or start is None:
        return ""
    return f", at {_second(start + timedelta(seconds=seconds))} the latest (its timeout)"


def _expiry(pod: Pod | None) -> str:
    """When the pod may be pruned; "" where nobody can tell."""
    if pod is None:
        return ""
    metadata = pod["metadata"]
    began = parse_time(metadata.get("creationTimestamp"))
    if counts_from_scheduling(metadata):
        began = scheduled_at(pod)
    try:
        term = read_term(metadata.get("annotations") or {}, ())
    except ValueError:
        return ""
    at = term.expiry(began) if term is not None and began is not None else None
    return f"; its pod and its log may be pruned from {_second(at)} on" if at else ""


def _second(time: datetime) -> str:
    return str(format_time(time.replace(microsecond=0))).replace(".000Z", "Z")
