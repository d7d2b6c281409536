"""JUnit XML of `reconcile --once`, as Jenkins, GitLab and GitHub's actions read it.

Each job is a suite of its own with one case: in the schema a suite has properties and a case has
none. A job that failed on its own is a failure; what kept it from running is an error.
"""

from xml.etree import ElementTree as ET  # writes only: nothing is parsed

from engine.cli.output import sanitize_line, sanitize_text
from engine.cli.printers.record import record_json
from engine.cli.printers.result import (
    current_record,
    format_attempts,
    job_exit_code,
    left_words,
    outcome_columns,
)
from engine.errors import EngineError, ExitCode, InvalidInputError
from engine.lifecycle.record import Record
from engine.reconcile.once import JobResult, OnceResult
from engine.times import format_time

_NO_PROPERTIES = ("number", "uid", "class", "failures", "lastWords", "pullPolicies")
"""Of what the JSON result has of an attempt."""


def junit_xml(ended: OnceResult | EngineError) -> str:
    """The whole result, or the error that ended the command before any job; both are masked."""
    if isinstance(ended, OnceResult):
        return _document([_suite(job, ended) for job in ended.jobs])
    suite = ET.Element("testsuite", name="engine reconcile")
    case = ET.SubElement(suite, "testcase", name="engine reconcile", classname="engine")
    kind = type(ended).__name__.removesuffix("Error")
    findings = ended.problems if isinstance(ended, InvalidInputError) else (ended,)
    texts = [str(finding) for finding in findings]
    _add_result(case, "error", kind, texts[0], texts)
    return _document([suite])


def _document(suites: list[ET.Element]) -> str:
    for suite in suites:
        for name, tag in ("failures", "failure"), ("errors", "error"), ("skipped", "skipped"):
            suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
        suite.set("tests", "1")
    root = ET.Element("testsuites", name="engine reconcile")
    for name in "tests", "failures", "errors":
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.extend(suites)
    ET.indent(root)
    whole = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'


def _suite(job: JobResult, result: OnceResult) -> ET.Element:
    record = current_record(job)
    place = job.job.place
    suite = ET.Element("testsuite", name=str(job.job.key), file=sanitize_line(place.file))
    case = ET.Element("testcase", name=job.job.name, classname=job.job.namespace)
    if record is not None and record.started_at is not None:
        suite.set("timestamp", format_time(record.started_at) or "")
        if record.finished_at is not None:
            seconds = max(0.0, (record.finished_at - record.started_at).total_seconds())
            suite.set("time", f"{seconds:.3f}")
            case.set("time", f"{seconds:.3f}")
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(job, record).items():
        ET.SubElement(properties, "property", name=name, value=sanitize_line(str(value)))
    suite.append(case)
    _outcome(case, job, record, result)
    if job.log is not None:
        ET.SubElement(case, "system-out").text = sanitize_text("\n".join(job.log.lines))
    return suite


def _properties(job: JobResult, record: Record | None) -> dict[str, object]:
    found: dict[str, object] = {
        "place": job.job.place,
        "specHash": job.job.spec_hash,
        "changed": str(job.changed).lower(),
        "state": outcome_columns(job)[0].strip("-"),
        "attempts": len(record.attempts) if record else 0,
    }
    for attempt in record_json(record)["attempts"]:
        for container, policy in attempt["pullPolicies"].items():
            attempt[f"pullPolicy.{container}"] = policy
        for name, value in attempt.items():
            if value not in (None, "") and name not in _NO_PROPERTIES:
                found[f"attempt.{attempt['number']}.{name}"] = value
    return found


def _outcome(case: ET.Element, job: JobResult, record: Record | None, result: OnceResult) -> None:
    if job.error is not None:
        kind = type(job.error).__name__.removesuffix("Error")
        _add_result(case, "error", kind, job.error.cause, [str(job.error)])
    elif record is not None and record.reason is not None and record.state.is_final:
        code = job_exit_code(job)
        if code is not ExitCode.OK:
            tag = "failure" if code is ExitCode.JOB_FAILED else "error"
            message = record.message or record.reason
            lines = [message, *format_attempts(record), left_words(job, result)]
            _add_result(case, tag, record.reason, message, [*filter(None, lines)])
    elif job.over:
        words = f"{record.state if record else 'Queued'}: its end was not awaited"
        _add_result(case, "skipped", "NotAwaited", words)
    else:
        kind = "Interrupted" if result.interrupted else "Timeout"
        state = record.state if record else "Queued"
        words = f"not over: {state}{f': {record.message}' if record and record.message else ''}"
        _add_result(case, "error", kind, words)


def _add_result(
    case: ET.Element, tag: str, kind: str, message: str, text: list[str] | None = None
) -> None:
    """A text keeps its lines; an attribute has one."""
    element = ET.SubElement(case, tag, type=kind, message=sanitize_line(message))
    element.text = sanitize_text("\n".join(text or []))
