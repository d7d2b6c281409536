"""What `engine describe` prints: everything about a job, for people and for programs."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from engine.cli.printers.status import UNKNOWN, job_json, source_words
from engine.cli.printers.table import colourise, format_rows
from engine.cli.printers.text import format_age, one_line
from engine.decide.absence import gone_since
from engine.decide.record import Attempt
from engine.reconcile.job_details import EventLine, JobDetails
from engine.status.containers import ContainerState, container_states
from engine.times import format_time


def job_data(details: JobDetails) -> dict[str, Any]:
    """As in `engine status -o json`, and the more that is known."""
    outlook = details.outlook
    return {
        **job_json(details.job),
        "waitsFor": outlook.waits_for if outlook else None,
        "next": outlook.next if outlook else None,
        "pods": [
            {
                "name": pod["metadata"]["name"],
                "uid": uid,
                "node": (pod.get("spec") or {}).get("nodeName"),
                "phase": (pod.get("status") or {}).get("phase"),
                "containers": [
                    {"name": state.name, "image": state.image, "state": _state_words(state)}
                    for state in container_states(pod)
                ],
            }
            for uid, pod in details.pods.items()
        ],
        "events": [
            {
                "at": format_time(event.at),
                "type": "Warning" if event.is_warning else "Normal",
                "reason": event.reason,
                "source": event.source,
                "pod": event.pod,
                "message": event.message,
                "count": event.count,
            }
            for event in details.events
        ],
        "unread": list(details.unread),
    }


def job_lines(details: JobDetails, *, colour: bool = False) -> list[str]:
    """Sections, as kubectl describe has them."""
    job, now = details.job, details.overview.as_of
    record, standing = job.record, job.standing
    if record is None or standing is None:
        return _fields([("Job", str(job.key)), ("State", UNKNOWN), ("Error", str(job.error))])
    state = standing.state.value
    if standing.reason and standing.reason.value != state:
        state += f" {standing.reason}"
    if colour:
        state = colourise(state, standing.state)
    fields = [
        ("Job", str(job.key)),
        ("Source", f"{record.source}, {source_words(details.overview, record.source)}"),
        ("Run", f"{record.run} (spec hash {record.spec_hash})"),
        ("Message", standing.message),
        ("Queued", _when(record.queued_at, now)),
        ("Started", _when(record.started_at, now)),
        ("Finished", _when(record.finished_at, now)),
        ("Recorded", _when(job.written_at, now)),
        ("Spec gone", _when(gone_since(record.annotations), now)),
    ]
    if not standing.is_recorded:
        fields.insert(4, ("Record", f"says {record.state} still"))
    if details.outlook is not None:
        fields += [("Waits for", details.outlook.waits_for), ("Next", details.outlook.next)]
    lines = _fields(fields)
    lines.insert(3, f"{'State:':<12}{state}")
    lines += ["Attempts:" if record.attempts else "Attempts:   none"]
    for attempt in record.attempts:
        lines += _attempt_lines(attempt, details.pods.get(attempt.uid), now)
    if record.history:
        lines.append("Runs before:")
        rows = [
            (
                past.run,
                past.state.value,
                past.reason.value if past.reason else "",
                _when(past.finished_at, now),
                past.message,
            )
            for past in record.history
        ]
        lines += _indented(format_rows(rows))
    lines += _event_lines(details.events, now)
    return [*lines, *(one_line(f"Not read:   {words}") for words in details.unread)]


def _indented(lines: Iterable[str], by: int = 2) -> list[str]:
    return [f"{' ' * by}{line}" for line in lines]


def _fields(fields: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each that says something."""
    return [f"{f'{name}:':<12}{one_line(text)}" for name, text in fields if text]


def _attempt_lines(attempt: Attempt, pod: Mapping[str, Any] | None, now: datetime) -> list[str]:
    end = attempt.outcome.value if attempt.outcome else "under way"
    code = f", exit code {attempt.exit_code}" if attempt.exit_code is not None else ""
    where = "no pod" if not attempt.uid else f"pod {attempt.pod}"
    if attempt.uid:
        node = (pod.get("spec") or {}).get("nodeName") if pod is not None else None
        where += ", gone" if pod is None else f" on {node}" if node else ", on no node yet"
    lines = [attempt.message] if attempt.message and not attempt.failures else []
    policies = ", ".join(f"{name} {policy}" for name, policy in (attempt.policies or {}).items())
    if policies:
        lines.append(f"pull policies: {policies}")
    lines += [
        f"{failure.container}, image {failure.image or 'unknown'}: {failure.reason}"
        f" ({failure.pull_class}): {failure.message}"
        for failure in attempt.failures
        if failure.message
    ]
    if pod is not None:
        lines += [
            f"{state.name}, image {state.image}: {_state_words(state)}"
            for state in container_states(pod)
        ]
    head = one_line(f"{attempt.number}  {end}{code}: {where}{_took(attempt, now)}")
    return [f"  {head}", *_indented(map(one_line, lines), by=5)]


def _took(attempt: Attempt, now: datetime) -> str:
    if attempt.started_at is None:
        return ""
    if attempt.finished_at is None:
        return f", since {format_age((now - attempt.started_at).total_seconds())}"
    return f", took {(attempt.finished_at - attempt.started_at).total_seconds():.1f}s"


def _state_words(state: ContainerState) -> str:
    if state.terminated:
        code, reason = state.terminated.get("exitCode"), state.terminated.get("reason", "")
        return f"ended with {code}" + (f" ({reason})" if reason else "")
    if state.running:
        return "running"
    waiting = [state.waiting.get("reason"), state.waiting.get("message")]
    return "waiting" + "".join(f": {words}" for words in waiting if words)


def _event_lines(events: Iterable[EventLine], now: datetime) -> list[str]:
    rows = [
        (
            format_age((now - event.at).total_seconds()) if event.at else "",
            "Warning" if event.is_warning else "Normal",
            event.reason,
            event.source,
            event.pod,
            event.message + (f" ({event.count} times)" if event.count > 1 else ""),
        )
        for event in events
    ]
    return ["Events:", *_indented(format_rows(rows))] if rows else ["Events:     none"]


def _when(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    return f"{format_time(at)} ({format_age((now - at).total_seconds())} ago)"
