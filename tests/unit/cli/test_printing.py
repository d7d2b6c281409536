"""What specs, files, the cluster and containers say, as it reaches a terminal, a log, a program."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from engine.cli.by_name import job_key
from engine.cli.main import report_crashes
from engine.cli.output import sanitize_line, sanitize_log, sanitize_text, to_json
from engine.errors import UsageError
from engine.refs import JobKey
from engine.telemetry.events import Event, InternalError
from engine.telemetry.redact import Redactor
from tests.support.printing import KEY, harmful, print_everything
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

OBEYED = "a\x1b]0;pwned\x07 \x9b31m \u202eevil\u2066 \u200e\u2028b\rc\x00\x7f\ue0001\U000e0041"
"""What terminals obey: OSC, C0, C1 and bidirectional controls, line separators, tags."""
COMMANDS = [
    "::error file=x::forged",
    "  ::add-mask::x",
    "\u2003::stop-commands::x",
    "##[error]forged",
    "said ##vso[task.setvariable variable=x]y",
    "##teamcity[buildStatus text='x']",
    "section_start:1:x",
    "travis_fold:start:x",
    "--- forged",
]
SECRET = 'hun"ter\\2: '


def yaml_of(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("text", [OBEYED, f"x\n{OBEYED}\n  y"])
def test_nothing_moves_the_cursor_of_a_terminal_or_changes_its_title(text: str) -> None:
    for printed in print_everything(text, Redactor(), name=text).texts:
        assert not harmful(printed)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("before", ["", "x\n", "x\r\n  ", "\x0b"])
def test_nobody_gives_commands_to_the_ci_system_that_shows_the_log(
    command: str, before: str
) -> None:
    text = f"{before}{command}\n{command}"
    for printed in print_everything(text, Redactor(), name=command).texts:
        assert not harmful(printed)


@pytest.mark.parametrize("text", [OBEYED, *COMMANDS, f"x\n{COMMANDS[0]}", "\ud800", SECRET])
def test_json_and_manifests_hold_what_was_said_all_the_same(text: str) -> None:
    printed = print_everything(text, Redactor())
    assert json.loads(printed.as_json["result"])["jobs"][0]["message"] == text
    assert json.loads(printed.as_json["status"])["jobs"][0]["message"] == text
    assert json.loads(printed.as_json["prune"])["pruned"][0]["reason"] == text
    assert json.loads(printed.as_json["event 0"])["cause"] == text
    assert json.loads(printed.manifests["json"])["items"][0]["spec"]["value"] == text
    if text != "\ud800":
        read = yaml_of(printed.manifests["yaml"])
        assert read == {"kind": "Pod", "spec": {"value": text, "list": [text], text: 1}}


@pytest.mark.parametrize("value", [SECRET, "hunter2\nsecond-line", "päss wörd", "\ud800abc"])
def test_no_secret_comes_out_of_any_printer(value: str) -> None:
    redact = Redactor()
    redact.add([value], KEY)
    redact.add([value], JobKey("ci", "other"))
    printed = print_everything(f"said {value}!", redact)
    for name, text in printed.for_people.items():
        assert "said ***!" in text, name
        assert value not in text
    for name, text in printed.as_json.items():
        assert json.dumps(value)[1:-1] not in text
        assert value not in json.dumps(json.loads(text), ensure_ascii=False), name


STRUCTURE = ["Succeeded", "Failed", "StateChanged", "warning", "info", "event", "ci/build", "name"]


@pytest.mark.parametrize(
    "value", [*STRUCTURE, '": "', '", "', "    ", '"jobs": [', "build-1", "main"]
)
def test_a_secret_hides_no_state_level_event_or_name_and_breaks_no_json(value: str) -> None:
    redact = Redactor()
    redact.add([value, f"{value}x"], KEY)
    plain, printed = (print_everything("exit code 3", r) for r in (Redactor(), redact))
    assert printed.as_json == plain.as_json
    assert printed.for_people == plain.for_people


def test_a_problem_of_a_hostile_file_is_one_harmless_line(tmp_path: Path, engine: Engine) -> None:
    config = write(
        tmp_path,
        "engine.yaml",
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {allowedImages: ['ok/*']}\n",
    )
    spec = document(image="evil\x1b]0;pwned\x07\n::error file=x::forged\u202e")
    write(tmp_path, "specs/::error::x\x1b[2J\n##[error]y.yaml", spec)
    for command in ("validate",), ("render",), ("reconcile", "--once"):
        said = engine(*command, "specs", "--config", config)
        assert said.code == 2
        assert not harmful(said.stdout + said.stderr)
        assert "specs/" in said.stdout + said.stderr


@pytest.mark.parametrize("argument", ["--x\n::error::y\x1b[2J", "-\x1b[2J", "no\n::error::/x"])
def test_a_hostile_argument_is_told_harmlessly(engine: Engine, argument: str) -> None:
    said = engine("validate", argument)
    assert said.code in {2, 6}
    assert not harmful(said.stderr)


def test_a_crash_in_any_thread_is_reported_like_everything_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    events: list[Event] = []

    class Broken:
        def __del__(self) -> None:
            raise ValueError("in a finalizer")

    def crash() -> None:
        raise ValueError("in a thread")

    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    with report_crashes(events.append):
        thread = threading.Thread(target=crash, name="worker-7")
        thread.start()
        thread.join()
        Broken()
        sys.excepthook(ValueError, ValueError("at last"), None)
    assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == before
    crashes = [event for event in events if isinstance(event, InternalError)]
    assert [crash.message for crash in crashes] == ["in a thread", "in a finalizer", "at last"]
    assert crashes[0].component == "worker-7"
    assert "test_printing.py" in crashes[0].traceback
    assert capsys.readouterr() == ("", "")


def test_a_printer_that_breaks_does_not_break_the_hook() -> None:
    def broken(event: Event) -> None:
        raise RuntimeError(event)

    with report_crashes(broken):
        sys.excepthook(ValueError, ValueError("x"), None)


CRASHING = """
import threading
import engine.reconcile.once
from engine.cli.main import main
from engine.telemetry.redact import REDACTOR

def crash():
    REDACTOR.add(["hunter2"])
    raise KeyError("hunter2")

def run(self):
    thread = threading.Thread(target=crash, name="stray")
    thread.start()
    thread.join()
    raise KeyboardInterrupt

engine.reconcile.once.RunOnce.run = run
main()
"""


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_crash_keeps_to_the_log_format_and_shows_no_secret(
    tmp_path: Path, log_format: str
) -> None:
    """The crash is that of a thread that the command knows nothing of."""
    write(tmp_path, "specs/a.yaml", document())
    arguments = ("reconcile", "--once", "--sandbox", "specs", "-vv", "--log-format", log_format)
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 130
    assert "KeyError: '***'" in done.stderr
    assert "hunter2" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "stray: internal error" in line]
    told = json.loads(line)["message"] if log_format == "json" else line
    assert told.startswith("stray: internal error: KeyError")


def test_blanks_stay_and_line_breaks_go() -> None:
    assert sanitize_line(" a  b \n\n c\td\u2003e ") == "a  b c d e"
    assert sanitize_text("a\n  b\x1b\n\n::c\n") == "a\n  b�\n\n�:c"
    assert to_json({"a": "é\u202e\U000e0041##[x]"}) == (
        '{"a": "é\\u202e\\udb40\\udc41#\\u0023[x]"}'
    )


def test_a_log_keeps_its_colours_and_gives_no_other_commands() -> None:
    red = "\x1b[31mred\x1b[0m"
    assert sanitize_log(f"{red}\n  a\tb") == f"{red}\n  a     b"
    for command in COMMANDS:
        assert not harmful(sanitize_log(command).replace("\x1b[0m", ""))
    plain = sanitize_log(f"{red}{OBEYED}").replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert not harmful(plain)


@pytest.mark.parametrize("name", ["", "/", "ci/", "/build", "a/b/c"])
def test_a_name_that_no_job_is_printed_by_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="ci/build"):
        job_key(name, "", "default")


def test_a_job_is_named_as_it_is_printed_or_in_the_namespace_that_is_given() -> None:
    assert job_key("ci/build", "", "default") == JobKey("ci", "build")
    assert job_key("build", "", "default") == JobKey("default", "build")
    assert job_key("build", "ci", "default") == job_key("ci/build", "ci", "default")
    with pytest.raises(UsageError, match="-n names another namespace: dev"):
        job_key("ci/build", "dev", "default")


def test_a_spec_hides_nothing_of_other_jobs_and_breaks_no_output(
    tmp_path: Path, process: Engine
) -> None:
    values = ["Succeeded", "Running", "ci/victim", "StateChanged", "info", '": "', '",\n', "victim"]
    secrets = {f"S{number}": {"value": value} for number, value in enumerate(values)}
    write(tmp_path, "specs/a.yaml", document("attacker", secrets=secrets))
    write(tmp_path, "specs/b.yaml", document("victim"))
    arguments = ("--once", "--sandbox", "specs", "-n", "ci", "-o", "json", "--log-format", "json")
    said = process("reconcile", *arguments)
    assert said.code == 0
    jobs = json.loads(said.stdout)["jobs"]
    assert [(job["name"], job["state"]) for job in jobs] == [
        ("attacker", "Succeeded"),
        ("victim", "Succeeded"),
    ]
    events = [json.loads(line) for line in said.lines if line.startswith("{")]
    told = [event["message"] for event in events if event.get("job") == "ci/victim"]
    assert told[-1] == "ci/victim: Succeeded"
    assert {event["level"] for event in events} == {"info"}
    assert "***" not in said.stdout + said.stderr
