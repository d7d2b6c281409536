"""What holds for every command: help, mistakes, and a cluster that isn't there."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.api.kubernetes_schema import bundled_schema
from engine.api.versions import SCHEMAS
from engine.cli.main import COMMANDS, load_command
from engine.errors import ExitCode
from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine


def kubeconfig(folder: Path, server: str) -> Path:
    text = f"""\
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
clusters: [{{name: here, cluster: {{server: "{server}"}}}}]
users: [{{name: me, user: {{token: x}}}}]
"""
    return write(folder, "kubeconfig", text)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine on which nobody listens, and that nobody else can take."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_help_names_every_command(engine: Engine) -> None:
    said = engine("--help")
    assert said.code == 0
    assert all(command in said.stdout for command in COMMANDS)
    _, codes = said.stdout.split("Exit codes: 0 all succeeded;")
    assert {str(code.value) for code in ExitCode if code} <= {*codes.split()}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(engine: Engine, command: str) -> None:
    assert engine(command, "--help").code == 0
    assert engine(command, "-h").stdout.startswith(f"Usage: engine {command}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_described_in_the_same_words_in_its_own_help(command: str) -> None:
    assert load_command(command).get_short_help_str(limit=200) == COMMANDS[command]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("recncile",), "error: no such command 'recncile' (did you mean reconcile?)"),
        (("validate", "--nope", "x"), "error: no such option '--nope' (engine validate --help)"),
        (
            ("render", "x", "-o", "xml"),
            "error: invalid value for '-o' / '--output': 'xml' is not one of",
        ),
        (("reconcile", "x", "-o", "json"), "--output needs --once"),
        (("reconcile", "x", "--once", "--concurrency", "0"), "0 is not in the range"),
        (("reconcile", "x", "--once", "--timeout", "soon"), "is not a duration"),
        (("reconcile", "x", "--once", "--source", "a b"), "as in a label"),
        (("schema", "Pod"), "'Pod' is not one of"),
    ],
)
def test_a_mistake_is_told_and_ends_with_2(
    engine: Engine, arguments: tuple[str, ...], words: str
) -> None:
    said = engine(*arguments)
    assert said.code == 2
    assert words in said.stderr
    assert said.stdout == ""


@pytest.mark.parametrize(("version", "kind"), SCHEMAS)
def test_a_schema_is_printed_with_what_it_refers_to(
    engine: Engine, version: str, kind: str
) -> None:
    said = engine("schema", kind)
    assert said.stdout == bundled_schema(kind)
    json.loads(said.stdout)


def test_a_schema_is_that_of_a_job_unless_another_is_asked_for(engine: Engine) -> None:
    assert engine("schema").stdout == bundled_schema("JobSpec")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(engine: Engine, shell: str) -> None:
    said = engine("completion", shell)
    assert said.code == 0
    assert "_ENGINE_COMPLETE" in said.stdout


def test_an_invalid_set_is_told_before_any_cluster_is_looked_for(
    tmp_path: Path, engine: Engine
) -> None:
    write(tmp_path, "specs/a.yaml", document("a"))
    write(tmp_path, "specs/b.yaml", document("b", timeout=0))
    said = engine("reconcile", "--once", "specs")
    assert (said.code, said.stdout) == (2, "")
    assert "spec.timeout is 0" in said.stderr
    assert "kubeconfig" not in said.stderr


@pytest.mark.parametrize("command", [("reconcile", "--once", "specs"), ("status",)])
def test_without_a_kubeconfig_the_hint_says_how_to_give_one(
    tmp_path: Path, process: Engine, command: tuple[str, ...]
) -> None:
    write(tmp_path, "specs/a.yaml", document())
    said = process(*command)
    assert (said.code, said.stdout) == (6, "")
    assert "no usable kubeconfig" in said.stderr
    assert "give one with --kubeconfig or KUBECONFIG" in said.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no such file"), ("a: [", "kubeconfig"), ("", "kubeconfig"), ("- a\n", "kubeconfig")],
)
def test_a_kubeconfig_that_cant_be_used_is_told(
    tmp_path: Path, process: Engine, content: str | None, words: str
) -> None:
    if content is not None:
        write(tmp_path, "config", content)
    said = process("status", "--kubeconfig", "config")
    assert (said.code, said.stdout) == (6, "")
    assert words in said.stderr


def test_a_context_that_is_not_in_the_kubeconfig_is_told(
    tmp_path: Path, process: Engine, closed_port: int
) -> None:
    path = kubeconfig(tmp_path, f"http://127.0.0.1:{closed_port}")
    said = process("status", "--kubeconfig", path, "--context", "nope")
    assert said.code == 6
    assert "nope" in said.stderr


@pytest.mark.parametrize("command", [("reconcile", "--once", "specs"), ("status",)])
def test_a_cluster_that_does_not_answer_is_told_with_its_address(
    tmp_path: Path, process: Engine, closed_port: int, command: tuple[str, ...]
) -> None:
    write(tmp_path, "specs/a.yaml", document())
    server = f"http://127.0.0.1:{closed_port}"
    said = process(*command, env={"KUBECONFIG": str(kubeconfig(tmp_path, server))})
    assert (said.code, said.stdout) == (6, "")
    line = said.lines[-1]
    assert f"{server}: no answer from the API server: " in line
    assert "Connection refused" in line
    assert "is it running" in line


def test_a_secret_that_is_not_set_stops_a_reconcile_before_any_write(
    tmp_path: Path, process: Engine
) -> None:
    """Against the embedded cluster: nothing but the message, and exit code 2."""
    write(tmp_path, "specs/a.yaml", document(secrets={"T": {"fromEnv": "ENGINE_SECRET_GONE"}}))
    said = process("reconcile", "--once", "specs", "--sandbox")
    assert (said.code, said.stdout) == (2, "")
    assert "fromEnv: the variable ENGINE_SECRET_GONE is not set" in said.stderr


@pytest.mark.parametrize(
    ("way", "text", "code", "words"),
    [
        ((), document(), 6, "nowhere: no usable kubeconfig: no such file"),
        (("--once",), document(), 6, "nowhere: no usable kubeconfig: no such file"),
        (("--once",), "kind: JobSpec\n", 2, "a.yaml:1:1: apiVersion is missing"),
    ],
)
def test_an_error_that_ends_a_reconcile_is_a_json_line_if_logs_are(
    tmp_path: Path, process: Engine, way: tuple[str, ...], text: str, code: int, words: str
) -> None:
    specs = write(tmp_path, "a.yaml", text)
    arguments = ("--log-format", "json", "--kubeconfig", str(tmp_path / "nowhere"))
    said = process("reconcile", *way, *arguments, str(specs))
    assert (said.code, said.stdout) == (code, "")
    (line,) = said.lines
    entry = json.loads(line)
    assert entry["level"] == "error"
    assert words in entry["message"]
