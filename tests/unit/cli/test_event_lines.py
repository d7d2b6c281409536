"""Events as lines on stderr, plain and JSON."""

import io
import json
import re
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from engine.api.model import PullClass
from engine.cli.printers.events import JsonPrinter, TextPrinter, format_event, open_printer
from engine.cli.printers.live_view import LiveView
from engine.errors import Diagnostic, Severity, SourceLocation
from engine.refs import JobKey, Ref
from engine.status.outcome import Reason, State
from engine.telemetry.events import (
    AttemptFailed,
    ErrorReported,
    Event,
    InternalError,
    JobUnchanged,
    JobUnmanaged,
    LeaderChanged,
    LogEnd,
    MaskedEvent,
    Notice,
    ObjectPruned,
    PullPolicyFallback,
    Ready,
    SpecProblem,
    SpecsRead,
    StateChanged,
)
from engine.telemetry.redact import Redactor
from tests.support.printing import events_of
from tests.unit.strategies import any_text

KEY = JobKey("ci", "build")
POD = Ref("Pod", "ci", "build-1")
DEFECT = "(this is a defect: report it with -vv)"
FOUND = Diagnostic(SourceLocation("a.yaml", 1, 2), "unknown field")
CUT = replace(FOUND, message="cut", severity=Severity.WARNING)
CRASH = InternalError(None, "worker-0", "KeyError", "'x'", "Traceback: ...")
LAST_WORDS = LogEnd(KEY, 1, "build-1", "main", "boom: no such host")
EVICTED = AttemptFailed(KEY, 2, "build-2", Reason.EVICTED, "low on memory")
FAILED = StateChanged(KEY, State.FAILED, Reason.SCRIPT_FAILED, "exit code 3")
PULL = PullPolicyFallback(KEY, 1, "main", "tool:1", "Always", "Never", "no", PullClass.TRANSIENT)
TOLD: dict[tuple[str, bool], dict[str, Event]] = {
    ("info", False): {
        "ci/build: Running": StateChanged(KEY, State.RUNNING),
        "ci/build: no valid spec any more; the job is no longer managed": JobUnmanaged(KEY),
        "note: hello": Notice("hello"),
        "specs read: 3 jobs in 2 files": SpecsRead(2, 3, 3, 0, 0),
        "a.yaml: fixed": Notice("fixed", "a.yaml"),
        "pod/ci/build-1 deleted: ttl 1s, age 2s": ObjectPruned(POD, "deleted", "ttl 1s, age 2s"),
        "leading": LeaderChanged(leads=True, holder="me"),
        "standing by: no engine leads": LeaderChanged(leads=False, holder=""),
        "ready": Ready(),
    },
    ("info", True): {
        "ci/build: pod build-1 deleted": Notice("pod build-1 deleted", KEY, detail=True),
        "ci/build: Failed, unchanged": JobUnchanged(KEY, State.FAILED),
        "specs read: 3 jobs in 2 files; 0 added, 1 changed, 0 removed": SpecsRead(2, 3, 0, 1, 0),
        "pod/ci/build-1 kept: young": ObjectPruned(POD, "kept", "young"),
    },
    ("warning", False): {
        "ci/build | boom: no such host": LAST_WORDS,
        "ci/build: Failed ScriptFailed: exit code 3": FAILED,
        "ci/build: attempt 1, main: pull policy Always failed, next is Never: no": PULL,
        "ci/build: pod build-1 is in no record": Notice(
            "pod build-1 is in no record", KEY, warning=True
        ),
        "ci/build: no answer; trying again": ErrorReported(KEY, "no answer", retrying=True),
        "a.yaml:1:2: warning: cut": SpecProblem(CUT),
        "pod/ci/build-1 invalid: no TTL": ObjectPruned(POD, "invalid", "no TTL"),
    },
    ("warning", True): {
        "ci/build: attempt 2 failed: Evicted: low on memory": EVICTED,
    },
    ("error", False): {
        "forbidden": ErrorReported(None, "forbidden", retrying=False),
        f"ci/build: internal error: KeyError {DEFECT}": replace(CRASH, key=KEY, retrying=False),
        f"worker-0: internal error: KeyError {DEFECT}; trying again": CRASH,
        "a.yaml:1:2: unknown field": SpecProblem(FOUND),
        "no such folder; what was read stays": SpecProblem("no such folder; what was read stays"),
        "pod/ci/build-1 failed: webhook": ObjectPruned(POD, "failed", "webhook"),
    },
}
"""By its level in JSON and whether only -v tells it: an event's line."""


def said(event: Event, *, verbose: bool = True, redact: Redactor | None = None) -> dict[str, Any]:
    out = io.StringIO()
    JsonPrinter(out, redact or Redactor(), verbose=verbose)(event)
    (line,) = out.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize(
    ("event", "line", "only_verbose", "level"),
    [
        (e, line, verbose, level)
        for (level, verbose), told in TOLD.items()
        for line, e in told.items()
    ],
)
def test_every_event_has_its_line(event: Event, line: str, only_verbose: bool, level: str) -> None:
    out = io.StringIO()
    TextPrinter(out, Redactor(), verbose=False)(event)
    assert out.getvalue() == ("" if only_verbose else f"{line}\n")
    entry = said(event)
    assert (entry["level"], entry["event"]) == (level, type(event).__name__)
    assert entry["message"] == format_event(MaskedEvent(event), verbose=True)
    quiet = io.StringIO()
    JsonPrinter(quiet, Redactor(), verbose=False)(event)
    assert bool(quiet.getvalue()) is not only_verbose


def test_an_internal_error_has_its_traceback_at_vv_and_in_json_without_the_secrets() -> None:
    redact = Redactor()
    redact.add(["hunter2"], KEY)
    event = InternalError(KEY, "worker-0", "KeyError", "hunter2", "Traceback:\n  of hunter2\n")
    out = io.StringIO()
    TextPrinter(out, redact, verbose=2)(event)
    assert out.getvalue().splitlines()[1:] == ["Traceback:", "  of ***"]
    entry = said(event, redact=redact)
    assert entry["traceback"] == "Traceback:\n  of ***\n"
    assert (entry["component"], entry["kind"], entry["cause"]) == ("worker-0", "KeyError", "***")


def test_no_event_was_forgotten_above() -> None:
    told = {type(event).__name__ for told in TOLD.values() for event in told.values()}
    assert told == {event.__name__ for event in Event.__subclasses__()}


def test_a_queued_job_says_in_json_since_when_it_waits() -> None:
    since = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert said(StateChanged(KEY, State.QUEUED, queued_at=since))["queuedAt"] == (
        "2026-01-02T03:04:05.000Z"
    )


def test_a_json_line_has_the_events_own_fields() -> None:
    event = StateChanged(KEY, State.FAILED, Reason.SCRIPT_FAILED, "exit code 3", 2)
    entry = said(event)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "level": "warning",
        "event": "StateChanged",
        "job": "ci/build",
        "state": "Failed",
        "reason": "ScriptFailed",
        "cause": "exit code 3",
        "attempt": 2,
        "message": "ci/build: Failed ScriptFailed: exit code 3",
    }
    assert said(ObjectPruned(POD, "deleted", "x"))["object"] == "pod/ci/build-1"
    assert said(SpecsRead(0, 0, 0, 0, 0))["added"] == 0
    assert said(Notice("restored", KEY))["job"] == "ci/build"
    assert said(Notice("fixed", "a.yaml")).keys() == {"time", "level", "event", "message"}


def test_no_line_is_shortened() -> None:
    event = replace(PULL, message=f"failed to pull: {'x' * 5_000}: connection refused")
    for out in io.StringIO(), Terminal():
        line = TextPrinter(out, Redactor()).line(MaskedEvent(event))
        assert line == format_event(MaskedEvent(event), verbose=False)
    assert said(event)["cause"] == event.message


@pytest.mark.parametrize("secret", ['quo"te\\back', "zwei\nzeilen", "pässwörd-名", "tab\there"])
def test_a_secret_is_masked_before_escapes_can_hide_it(secret: str) -> None:
    redact = Redactor()
    redact.add([secret], KEY)
    for event in (
        StateChanged(KEY, State.FAILED, None, f"said {secret}!"),
        Notice(f"said {secret}!"),
        SpecProblem(Diagnostic(SourceLocation("a.yaml", 1, 1), secret, f"try {secret}")),
        ObjectPruned(POD, "deleted", secret),
        InternalError(KEY, "worker-0", "KeyError", secret, f"Traceback: {secret}"),
    ):
        entry = said(event, redact=redact)
        values = [value for value in entry.values() if isinstance(value, str)]
        assert not [value for value in values if secret in value]
        assert any("***" in value for value in values)


def test_a_line_is_one_line_of_ascii_whatever_a_container_says() -> None:
    out = io.StringIO()
    nasty = "a\nb\u2028c\x00\x1b[31m\udc80名" + "x" * 10_000
    JsonPrinter(out, Redactor(), verbose=False)(StateChanged(KEY, State.FAILED, None, nasty))
    text = out.getvalue()
    assert text.isascii()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert json.loads(text)["cause"].startswith("a\nb\u2028c\x00\x1b[31m\udc80名xxx")
    assert len(text) < 16_384


@given(text=any_text)
def test_each_line_of_an_engine_that_stays_begins_with_its_time(text: str) -> None:
    plain, timed, began = io.StringIO(), io.StringIO(), datetime.now(UTC)
    for event in events_of(text):
        TextPrinter(plain, Redactor(), verbose=2)(event)
        TextPrinter(timed, Redactor(), verbose=2, timed=True)(event)
    lines = [line.split(" ", 1) for line in timed.getvalue().split("\n")[:-1]]
    assert "".join(f"{rest}\n" for _, rest in lines) == plain.getvalue()
    times = [datetime.fromisoformat(time) for time, _ in lines]
    assert times == sorted(times)
    assert began - timedelta(milliseconds=1) <= times[0] <= times[-1] <= datetime.now(UTC)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z", time) for time, _ in lines)


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_an_event_without_a_line_has_no_time_either(verbose: int) -> None:
    timed = io.StringIO()
    TextPrinter(timed, Redactor(), verbose=verbose, timed=True)(JobUnchanged(KEY, State.FAILED))
    assert timed.getvalue().count("\n") == (verbose > 0)


@pytest.mark.parametrize(("jobs", "has_time"), [(None, True), (3, False)])
def test_lines_have_times_where_the_engine_stays(
    capsys: pytest.CaptureFixture[str], jobs: int | None, has_time: bool
) -> None:
    with open_printer(0, "text", jobs) as printer:
        printer(Notice("hello"))
    assert capsys.readouterr().err.startswith("20" if has_time else "note: hello")


def test_the_time_is_now_in_utc() -> None:
    out = io.StringIO()
    JsonPrinter(out, Redactor(), verbose=False)(Ready())
    stamp = json.loads(out.getvalue())["time"]
    assert stamp.endswith("Z")
    assert abs(datetime.fromisoformat(stamp) - datetime.now(UTC)) < timedelta(seconds=10)


@pytest.mark.parametrize("kind", [TextPrinter, JsonPrinter])
def test_lines_of_several_threads_do_not_mix(kind: type[Any]) -> None:
    out = io.StringIO()
    lines = kind(out, Redactor())
    threads = [
        threading.Thread(target=lambda: [lines(Notice("x" * 50)) for _ in range(100)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = out.getvalue().splitlines()
    assert len(told) == 800
    assert len({line[len('{"time":"2026-01-02T03:04:05.678Z"') :] for line in told}) == 1 or (
        set(told) == {f"note: {'x' * 50}"}
    )


class Gone(io.StringIO):
    """A pipe that nobody reads any more."""

    tries = 0

    def write(self, text: str) -> int:
        del text
        self.tries += 1
        raise BrokenPipeError


@pytest.mark.parametrize("kind", [TextPrinter, JsonPrinter])
def test_an_output_that_is_gone_stops_the_lines_and_nothing_else(kind: type[Any]) -> None:
    out = Gone()
    lines = kind(out, Redactor())
    lines(Notice("x"))
    lines(Notice("y"))
    lines.close()
    assert out.tries > 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "verbose", "term", "log_format", "kind"),
    [
        (Terminal(), False, "xterm", "text", LiveView),
        (Terminal(), True, "xterm", "text", TextPrinter),
        (Terminal(), False, "dumb", "text", TextPrinter),
        (Terminal(), False, "unknown", "text", TextPrinter),
        (io.StringIO(), False, "xterm", "text", TextPrinter),
        (Terminal(), False, "xterm", "json", JsonPrinter),
    ],
)
def test_the_live_view_is_for_terminals_that_can_show_it(
    monkeypatch: pytest.MonkeyPatch,
    out: io.StringIO,
    verbose: bool,
    term: str,
    log_format: str,
    kind: type[Any],
) -> None:
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("TERM", term)
    with open_printer(int(verbose), log_format) as shown:
        assert type(shown) is kind


@pytest.mark.parametrize(
    ("out", "no_color", "is_coloured"),
    [(Terminal(), "", True), (Terminal(), "1", False), (io.StringIO(), "", False)],
)
def test_lines_and_the_live_view_have_colours_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
    out: io.StringIO,
    no_color: str,
    is_coloured: bool,
) -> None:
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    out.seek(0)
    out.truncate()
    with open_printer(0, "text") as shown:
        shown(FAILED)
    assert ("\x1b[31m" in out.getvalue()) is is_coloured
