"""Any text through everything that prints: what comes out for people, and what for programs."""

import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from msgspec.structs import asdict, replace
from rich.console import Console

from engine.cli import output
from engine.cli.doctor import result_rows
from engine.cli.output import format_rows, sanitize_line, to_json
from engine.cli.printers.describe import job_data, job_lines
from engine.cli.printers.events import JsonPrinter, TextPrinter
from engine.cli.printers.live_view import Board
from engine.cli.printers.manifests import print_json, print_yaml
from engine.cli.printers.plan import Plan, plan_diff, plan_json, plan_table
from engine.cli.printers.prune import PrunePrinter
from engine.cli.printers.result import mask_result, result_json, result_table
from engine.cli.printers.status import overview_data, overview_rows, source_lines
from engine.errors import (
    ApiError,
    BrokenRecordError,
    Diagnostic,
    EngineError,
    InvalidInputError,
    SourceLocation,
)
from engine.inspect.doctor import CheckResult, CheckStatus
from engine.inspect.manifest_diff import map_values
from engine.inspect.plan import JobPlan, ObjectDiff
from engine.inspect.view import JobView, LeaseHolders, Overview, PodEvent, queue_positions
from engine.lifecycle.change_reason import PlannedAction
from engine.lifecycle.observed_status import recorded_status
from engine.lifecycle.record import Attempt, Record, RunHistoryEntry
from engine.prune.result import PruneAction, PruneEntry, PruneResult
from engine.reconcile.once import JobResult, OnceResult
from engine.refs import JobKey, Ref
from engine.status.outcome import Reason, State
from engine.telemetry.events import (
    AttemptFailed,
    ErrorReported,
    Event,
    InternalError,
    LogEnd,
    MaskedEvent,
    Notice,
    ObjectPruned,
    PullPolicyFallback,
    SpecProblem,
    StateChanged,
)
from engine.telemetry.redact import Redactor
from engine.times import format_time
from engine.values import map_text
from tests.unit.builders import make_job

KEY = JobKey("ci", "build")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JOB = make_job()


@dataclass(frozen=True, slots=True)
class Printed:
    """By the name of what printed it; the manifests hold what the user's own specs do, unmasked."""

    for_people: Mapping[str, str]
    as_json: Mapping[str, str]
    manifests: Mapping[str, str]

    @property
    def texts(self) -> tuple[str, ...]:
        """All of it."""
        found = self.for_people, self.as_json, self.manifests
        return tuple(text for texts in found for text in texts.values())


def harmful(text: str) -> list[str]:
    """Lines that a terminal or a CI system would obey."""
    begins = ("::", "section_start:", "section_end:", "travis_fold:", "--- ", "+++ ", "~~~ ")
    anywhere = ("##[", "##vso[", "##teamcity[")
    return [
        line
        for line in text.split("\n")
        if not line.isprintable()
        or line.lstrip().startswith(begins)
        or any(mark in line for mark in anywhere)
    ]


def events_of(text: str, name: str = "name") -> tuple[Event, ...]:
    """Every kind of event that somebody else's words are in, and `name` where names are."""
    where = SourceLocation(f"{name}.yaml", 1, 2)
    return (
        StateChanged(KEY, State.RUNNING, None, text),
        StateChanged(replace(KEY, name="other"), State.FAILED, Reason.SCRIPT_FAILED, text),
        PullPolicyFallback(KEY, 1, "main", name, "Always", "Never", text),
        AttemptFailed(KEY, 1, "build-1", Reason.EVICTED, text),
        LogEnd(KEY, 1, "build-1", "main", text),
        Notice(text, KEY, detail=True),
        ErrorReported(KEY, text, retrying=True),
        ErrorReported(None, text, retrying=False),
        InternalError(None, "worker-0", "KeyError", text, f"Traceback:\n  {text}\n{text}"),
        Notice(text),
        SpecProblem(Diagnostic(where, text, text)),
        SpecProblem(text),
        Notice(text, where.file, warning=True),
        ObjectPruned(Ref("Pod", "ci", name), "failed", text),
    )


def print_everything(text: str, redact: Redactor, name: str = "name") -> Printed:
    """`text` as free text and, in manifests, as a value; `name` as a file's or an object's name."""
    events = events_of(text, name)
    lines, json_lines, frame, errors = (io.StringIO() for _ in range(4))
    for_people = TextPrinter(lines, redact, verbose=2)
    short = TextPrinter(lines, redact)
    for_programs = JsonPrinter(json_lines, redact, verbose=True)
    live = Board()
    for event in events:
        for_people(event)
        short(event)
        with patch("engine.cli.output.format_time", lambda _: format_time(NOW)):
            for_programs(event)
        live.apply(MaskedEvent(map_text(event, redact)), 0.0, NOW)
    Console(file=frame, width=100, color_system=None).print(live.render(50, 1.0))
    where = SourceLocation(f"{name}.yaml", 1, 2)
    with redirect_stderr(errors), patch.object(output, "REDACTOR", redact):
        output.echo_error(InvalidInputError((Diagnostic(where, text, text),)))
        output.echo_error(ApiError(text, where=name, hint=text, status=500, reason="x"))
    result, pruned = mask_result(*_result(text, name), redact)
    (record,) = [job.record for job in result.jobs if job.record]
    error = BrokenRecordError("ci", "odd.record", redact(text))
    queue = queue_positions([record], NOW)[KEY]
    pod_event = PodEvent(NOW, "Warning", redact(text), redact(text), "p", redact(text), 2)
    jobs = (
        JobView(KEY, record, None, recorded_status(record), queue=queue, events=(pod_event,)),
        JobView(replace(KEY, name="odd"), None, error),
    )
    overview = Overview(jobs, NOW, LeaseHolders(NOW), (sanitize_line(redact(text)),))
    results = [CheckResult("reach", CheckStatus.FAILED, redact(text), redact(text), "ci")]
    prune_text, prune_json = io.StringIO(), io.StringIO()
    for printer in PrunePrinter(prune_text, "table"), PrunePrinter(prune_json, "json"):
        for entry in pruned.entries:
            printer.entry(entry)
        printer.end(pruned.errors)
    plan = _plan(text, pruned, redact)
    return Printed(
        for_people={
            "lines": lines.getvalue(),
            "live view": frame.getvalue(),
            "errors": errors.getvalue(),
            "result": result_table(result, pruned),
            "status": "\n".join(
                [*format_rows(overview_rows(jobs, NOW)), *source_lines(overview, jobs)]
            ),
            "describe": "\n".join(job_lines(jobs[0], overview)),
            "doctor": "\n".join(format_rows(result_rows(results))),
            "prune": prune_text.getvalue(),
            "plan": plan_table(plan),
        },
        as_json={
            **{f"event {n}": line for n, line in enumerate(json_lines.getvalue().splitlines())},
            "result": result_json(result, pruned),
            "status": to_json(overview_data(overview, jobs)),
            "describe": to_json(job_data(jobs[0], overview)),
            "doctor": to_json([asdict(one) for one in results]),
            "prune": prune_json.getvalue(),
            "plan": plan_json(plan),
        },
        manifests={**_manifests(text), "diff": _body(plan_diff(plan, verbose=True))},
    )


def _result(text: str, name: str) -> tuple[OnceResult, PruneResult]:
    past = RunHistoryEntry(
        "3f9c2a1b",
        state=State.FAILED,
        reason=Reason.SCRIPT_FAILED,
        message="exit code 3",
        finished_at=NOW,
    )
    attempt = Attempt(1, "build-1", "u", {"main": "Always"}, outcome=Reason.EVICTED, message=text)
    record = Record(KEY, "default", JOB.spec_hash, message=text, history=(past,))
    record = replace(record, attempts=(attempt,), queued_at=NOW)
    failed = JobResult(JOB, None, changed=False, over=False, error=EngineError(text, hint=text))
    entries = (PruneEntry(Ref("Pod", "ci", name), PruneAction.FAILED, text),)
    log = LogEnd(KEY, 1, "build-1", "main", text)
    jobs = (JobResult(JOB, record, changed=True, over=True, log=log), failed)
    return OnceResult(jobs), PruneResult(
        entries, warnings=(text,), errors=(EngineError(text, where=name),)
    )


def _plan(text: str, pruned: PruneResult, redact: Redactor) -> Plan:
    """One job that would start, with `text` in its manifests, and one that is refused."""
    one, other = ({"kind": "Pod", "spec": {"list": [text] * n}} for n in (1, 2))
    ref = Ref("Pod", "ci", "build-1")
    objects = (ObjectDiff(ref, map_values(one, redact), ref, map_values(other, redact)),)
    error, words = EngineError(text, hint=text), redact(text)
    jobs = (
        JobPlan(JOB, PlannedAction.START, words, ("spec.image",), words, objects),
        JobPlan(JOB, PlannedAction.FAIL, words, error=error),
    )
    return Plan(jobs, pruned)


def _body(diff: str) -> str:
    """A unified diff without the headers that it begins each object with: names, all of them."""
    return "".join(
        line
        for line in diff.splitlines(keepends=True)
        if not line.startswith(("--- pod/ci/build-1", "+++ pod/ci/build-1"))
    )


def _manifests(text: str) -> dict[str, str]:
    manifest: dict[str, Any] = {"kind": "Pod", "spec": {"value": text, "list": [text], text: 1}}
    printed = {}
    for name, print_manifests in ("yaml", print_yaml), ("json", print_json):
        out = io.StringIO()
        with redirect_stdout(out):
            print_manifests([manifest])
        printed[name] = out.getvalue()
    return printed
