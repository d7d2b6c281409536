"""What CI systems are given: valid by their schemas, and nothing in it is a command to them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from engine.cli.printers.junit import junit_xml
from engine.cli.printers.result import exit_code, mask_result
from engine.errors import (
    END,
    ApiError,
    Diagnostic,
    EngineError,
    ExitCode,
    InvalidInputError,
    Severity,
    SourceLocation,
    UnreachableError,
)
from engine.files import write_whole
from engine.lifecycle.record import Attempt, Record
from engine.prune.result import PruneResult
from engine.reconcile.once import JobResult, OnceResult
from engine.status.outcome import Reason, State
from engine.telemetry.events import LogEnd
from engine.telemetry.redact import Redactor
from tests.support.printing import harmful
from tests.support.published_schemas import require_valid_junit
from tests.unit.builders import make_job

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOSTILE = "a\x1b]0;x\x07\n::error::forged\r\n##[group]x ]]> <b> | [x](http://x) `\ud800\x00\u202e"


def ended(name: str, reason: Reason, message: str = "", *attempts: Attempt) -> JobResult:
    job = make_job(name)
    record = Record(
        job.key, "default", job.spec_hash,
        state=reason.state, reason=reason, message=message,
        started_at=NOW, finished_at=NOW + timedelta(seconds=1500.25),
        attempts=attempts,
    )  # fmt: skip
    return JobResult(job, record, changed=True, over=True)


def failed(message: str = "exit code 3") -> JobResult:
    pulled = Attempt(
        1, "test-1", "u", {"main": "Always"},
        outcome=Reason.IMAGE_PULL_FAILED, message="connection refused",
    )  # fmt: skip
    last = Attempt(2, "test-2", "v", outcome=Reason.SCRIPT_FAILED, message=message, exit_code=3)
    job = ended("test", Reason.SCRIPT_FAILED, message, pulled, last)
    return replace(job, log=LogEnd(job.job.key, 1, "build-1", "main", "running\nboom: " + message))


def not_over(name: str, *, over: bool = False) -> JobResult:
    job = make_job(name)
    record = Record(job.key, "default", job.spec_hash, state=State.RUNNING)
    return JobResult(job, record, changed=True, over=over)


def problems(text: str = "unknown field", file: str = "jobs/a b.yaml") -> tuple[Diagnostic, ...]:
    return (
        Diagnostic(SourceLocation(file, 7, 3), text, "did you mean x?"),
        Diagnostic(SourceLocation(file, 7, 3), text, severity=Severity.WARNING),
        Diagnostic(SourceLocation(file), text),
        Diagnostic(SourceLocation(file, END), "and more problems in this file"),
    )


def cases(text: str) -> dict[str, ET.Element]:
    return {case.get("name", ""): case for case in ET.fromstring(text).iter("testcase")}


@pytest.mark.parametrize("state", [None, State.QUEUED])
def test_a_job_that_never_began_is_no_success_by_whatever_way_it_was_given_up(
    state: State | None,
) -> None:
    job = make_job()
    record = Record(job.key, "default", job.spec_hash, state=state) if state else None
    given_up = JobResult(job, record, changed=False, over=True)
    assert exit_code(OnceResult((given_up,))) == ExitCode.REFUSED
    waits = replace(given_up, over=False)
    assert exit_code(OnceResult((waits,), timed_out=True)) == ExitCode.TIMEOUT


def test_junit_has_a_case_for_each_job_and_its_attempts_in_words() -> None:
    result = OnceResult((ended("build", Reason.SUCCEEDED), failed()))
    text = junit_xml(result)
    require_valid_junit(text)
    root = ET.fromstring(text)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "0")
    case = cases(text)["test"]
    assert (case.get("classname"), case.get("time")) == ("ci", "1500.250")
    failure = case.find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("ScriptFailed", "exit code 3")
    assert "attempt 1, pod test-1: ImagePullFailed: connection refused" in (failure.text or "")
    assert cases(text)["build"].find("failure") is None


def test_junit_has_the_last_lines_of_the_container_that_failed() -> None:
    told = cases(junit_xml(OnceResult((failed(),))))["test"].find("system-out")
    assert told is not None
    assert told.text == "running\nboom: exit code 3"


@pytest.mark.parametrize(
    ("job", "tag", "kind"),
    [
        (ended("x", Reason.OOM_KILLED), "failure", "OOMKilled"),
        (ended("x", Reason.IMAGE_PULL_FAILED), "error", "ImagePullFailed"),
        (ended("x", Reason.ADMISSION_REFUSED), "error", "AdmissionRefused"),
        (not_over("x"), "error", "Timeout"),
        (not_over("x", over=True), "skipped", "NotAwaited"),
        (
            JobResult(
                make_job("x"), None, changed=False, over=True,
                error=ApiError("no", status=500, reason="x"),
            ),
            "error",
            "Api",
        ),
    ],
)  # fmt: skip
def test_what_a_job_did_is_a_failure_and_what_was_done_to_it_an_error(
    job: JobResult, tag: str, kind: str
) -> None:
    masked, _ = mask_result(OnceResult((job,), timed_out=True), PruneResult(), Redactor())
    text = junit_xml(masked)
    require_valid_junit(text)
    (told,) = cases(text)["x"]
    assert (told.tag, told.get("type")) == (tag, kind)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (InvalidInputError(problems()), "InvalidInput", "jobs/a b.yaml:7:3: unknown field"),
        (UnreachableError("no answer", where="http://x"), "Unreachable", "http://x: no answer"),
        (EngineError("interrupted"), "Engine", "interrupted"),
    ],
)
def test_what_ended_a_run_before_any_job_is_a_case_in_error(
    error: EngineError, kind: str, message: str
) -> None:
    text = junit_xml(error.map_text(Redactor()))
    require_valid_junit(text)
    (told,) = cases(text)["engine reconcile"]
    assert (told.tag, told.get("type")) == ("error", kind)
    assert (told.get("message") or "").startswith(message)


def test_a_junit_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "engine.xml"
    write_whole(path, "first")
    write_whole(path, "whole")
    assert path.read_text() == "whole"
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half a character: \ud800")
    assert path.read_text() == "whole"
    assert [entry.name for entry in path.parent.iterdir()] == ["engine.xml"]


@pytest.mark.parametrize("path", ["/dev/null", "/"])
def test_no_report_replaces_a_device_or_a_folder(path: str) -> None:
    with pytest.raises(OSError, match="not a file"):
        write_whole(Path(path), "text")


def test_no_report_holds_what_a_terminal_or_a_ci_system_would_obey() -> None:
    result, _ = mask_result(OnceResult((failed(HOSTILE),)), PruneResult(), Redactor())
    texts = [
        junit_xml(result),
        junit_xml(EngineError(HOSTILE, hint=HOSTILE)),
    ]
    for text in texts:
        assert not harmful(text)
    require_valid_junit(texts[0])


def test_what_is_secret_is_in_no_report() -> None:
    redact = Redactor()
    job = failed("it is hun<ter|2")
    redact.add(["hun<ter|2"], job.job.key)
    result, _ = mask_result(OnceResult((job,)), PruneResult(), redact)
    found = junit_xml(result)
    assert "it is ***" in found
    for form in ("hun<ter|2", "hun&lt;ter|2"):
        assert form not in found
