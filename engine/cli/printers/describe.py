"""The output of `engine describe`: all that is known of one job, for people and for programs."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import asdict

from engine.cli.output import colourise, format_rows, sanitize_line, terminal_width
from engine.cli.printers.status import error_state, job_json
from engine.durations import format_age
from engine.inspect.view import JobView, Overview, next_step
from engine.lifecycle.orphan import orphaned_since
from engine.lifecycle.record import Attempt
from engine.lifecycle.retry import time_left
from engine.status.containers import ContainerState, container_states
from engine.times import format_time

_LINES = 10
"""That the message of an Event may fill on a terminal."""


def job_data(job: JobView, overview: Overview) -> dict[str, Any]:
    """As in `engine status -o json`, with pods, Events and the next step."""
    waits_for, following = next_step(job)
    pods = [
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
        for uid, pod in job.pods.items()
    ]
    return {
        **job_json(job),
        "waitsFor": waits_for or None,
        "next": following or None,
        "pods": pods,
        "events": [asdict(event) for event in job.events],
        "unread": list(overview.unread),
    }


def job_lines(job: JobView, overview: Overview, *, colour: bool = False) -> list[str]:
    """Sections, as kubectl describe has them."""
    record, status, now = job.record, job.status, overview.as_of
    if record is None or status is None:
        state, error = error_state(job), str(job.error)
        return _fields([("Job", str(job.key)), ("State", state), ("Error", error)])
    state = error_state(job) if job.error else status.state.value
    if status.reason and not job.error and status.reason.value != state:
        state = f"{state} {status.reason}"
    waits_for, following = next_step(job)
    lines = _fields(
        [
            ("Job", str(job.key)),
            ("Source", record.source_words),
            ("Run", record.run),
            ("Error", str(job.error or "")),
            ("Message", status.message and status.message + time_left(record, now)),
            ("Record", "" if status.is_recorded else f"still says {record.state}"),
            ("Queued", _when(record.queued_at, now)),
            ("Started", _when(record.started_at, now)),
            ("Finished", _when(record.finished_at, now)),
            ("Recorded", _when(job.written_at, now)),
            ("Spec hash", record.spec_hash),
            ("Spec gone", _when(orphaned_since(record.annotations), now)),
            ("Engine", "" if record.state.is_final else overview.holders.words(record.source)),
            ("Waits for", waits_for),
            ("Next", following),
        ]
    )
    lines.insert(3, f"{'State:':<12}{colourise(state, status.state) if colour else state}")
    lines.append("Attempts:" if record.attempts else "Attempts:   none")
    for attempt in record.attempts:
        where = record.position(attempt), attempt, job.pods.get(attempt.uid)
        lines += _attempt_lines(*where, now, status.message)
    past = [
        (one.run, one.state, one.reason or "", _when(one.finished_at, now), one.message)
        for one in record.history
    ]
    events = [
        (
            "",
            format_age((now - event.at).total_seconds()) if event.at else "",
            event.type,
            event.reason,
            event.source,
            event.pod,
            event.message + (f" ({event.count} times)" if event.count > 1 else ""),
        )
        for event in job.events
    ]
    lines += ["Runs before:", *_indented(format_rows(past))] if past else []
    shown = format_rows(events, width=terminal_width(), below=_LINES)
    lines += ["Events:", *shown] if events else ["Events:     none"]
    return [*lines, *(sanitize_line(f"Not read:   {words}") for words in overview.unread)]


def _indented(lines: Iterable[str], by: int = 2) -> list[str]:
    return [f"{' ' * by}{line}" for line in lines]


def _fields(fields: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each that has a text."""
    return [f"{f'{name}:':<12}{sanitize_line(text)}" for name, text in fields if text]


def _attempt_lines(
    position: int, attempt: Attempt, pod: Mapping[str, Any] | None, now: datetime, said: str
) -> list[str]:
    """Without messages that are part of what is `said` above."""
    end = attempt.outcome.value if attempt.outcome else "under way"
    code = f", exit code {attempt.exit_code}" if attempt.exit_code is not None else ""
    where = "no pod"
    if attempt.uid:
        node = (pod.get("spec") or {}).get("nodeName") if pod is not None else None
        where = f"pod {attempt.pod}"
        where += ", gone" if pod is None else f" on {node}" if node else ", on no node yet"
    took = ""
    if attempt.started_at and attempt.finished_at:
        took = f", took {(attempt.finished_at - attempt.started_at).total_seconds():.1f}s"
    elif attempt.started_at:
        took = f", since {format_age((now - attempt.started_at).total_seconds())}"
    lines = [attempt.message] if attempt.message not in said and not attempt.failures else []
    policies = ", ".join(f"{name} {policy}" for name, policy in attempt.policies.items())
    lines += [f"pull policies: {policies}"] if policies else []
    lines += [
        f"{failure.container}, image {failure.image or 'unknown'}: {failure.reason}"
        f" ({failure.pull_class}): {failure.message}"
        for failure in attempt.failures
        if failure.message not in said
    ]
    lines += [
        f"{state.name}, image {state.image}: {_state_words(state)}"
        for state in (container_states(pod) if pod is not None else ())
    ]
    for words in attempt.last_words:
        lines += [f"{words.container} | {line}" for line in words.message.splitlines()]
    head = sanitize_line(f"{position}  {end}{code}: {where}{took}")
    return [f"  {head}", *_indented(map(sanitize_line, lines), by=5)]


def _state_words(state: ContainerState) -> str:
    if state.terminated:
        code, reason = state.terminated.get("exitCode"), state.terminated.get("reason", "")
        return f"ended with {code}" + (f" ({reason})" if reason else "")
    if state.running:
        return "running"
    waiting = [state.waiting.get("reason"), state.waiting.get("message")]
    return "waiting" + "".join(f": {words}" for words in waiting if words)


def _when(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    return f"{format_time(at)} ({format_age((now - at).total_seconds())} ago)"
