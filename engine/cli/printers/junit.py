"""JUnit XML of `reconcile --once`, as Jenkins, GitLab and GitHub's actions read it.

Each job is a case. A job that failed on its own is a failure. What kept one from running is an
error.
"""

from xml.etree import ElementTree as ET  # writes only: nothing is parsed

from engine.cli.output import sanitize_line, sanitize_text
from engine.cli.printers.result import current_record, format_attempts, job_exit_code, left_words
from engine.errors import EngineError, ExitCode, InvalidInputError
from engine.reconcile.once import JobResult, OnceResult

_NAME = "engine reconcile"


def junit_xml(ended: OnceResult | EngineError) -> str:
    """The whole result, or the error that ended the command before any job; both are masked."""
    suite = ET.Element("testsuite", name=_NAME)
    if isinstance(ended, OnceResult):
        for job in ended.jobs:
            _add_case(suite, job, ended)
    else:
        case = ET.SubElement(suite, "testcase", name=_NAME, classname="engine")
        findings = ended.problems if isinstance(ended, InvalidInputError) else (ended,)
        _add_result(case, "error", _kind(ended), *map(str, findings))
    root = ET.Element("testsuites", name=_NAME)
    root.append(suite)
    counts = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
    for name, path in counts.items():
        for element in (root, suite):
            element.set(name, str(len(suite.findall(path))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    ET.indent(root)
    whole = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'


def _add_case(suite: ET.Element, job: JobResult, result: OnceResult) -> None:
    record = current_record(job)
    case = ET.SubElement(suite, "testcase", name=job.job.name, classname=job.job.namespace)
    if record is not None and record.started_at is not None and record.finished_at is not None:
        seconds = max(0.0, (record.finished_at - record.started_at).total_seconds())
        case.set("time", f"{seconds:.3f}")
    state = record.state if record else "Queued"
    if job.error is not None:
        _add_result(case, "error", _kind(job.error), job.error.cause, str(job.error))
    elif record is not None and record.reason is not None and record.state.is_final:
        code = job_exit_code(job)
        if code is not ExitCode.OK:
            tag = "failure" if code is ExitCode.JOB_FAILED else "error"
            lines = (record.message or record.reason, *format_attempts(record))
            _add_result(case, tag, record.reason, *lines, left_words(job, result))
    elif job.over:
        _add_result(case, "skipped", "NotAwaited", f"{state}: its end was not awaited")
    else:
        words = f": {record.message}" if record and record.message else ""
        kind = "Interrupted" if result.interrupted else "Timeout"
        _add_result(case, "error", kind, f"not over: {state}{words}")
    if job.log is not None:
        ET.SubElement(case, "system-out").text = sanitize_text("\n".join(job.log.lines))


def _kind(error: EngineError) -> str:
    return type(error).__name__.removesuffix("Error")


def _add_result(case: ET.Element, tag: str, kind: str, *lines: str) -> None:
    """The first line is the message; the text has all of them."""
    element = ET.SubElement(case, tag, type=kind, message=sanitize_line(lines[0]))
    element.text = sanitize_text("\n".join(filter(None, lines)))
