"""What a command imports is what a user waits for."""

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli.main import COMMANDS
from engine.sandbox import Sandbox
from tests.unit.builders import document, write

ROOT = Path(__file__).parents[3]
LIST = "import sys; sys.stderr.write('\\n'.join(sys.modules))"


ABOUT_RUNS = {"engine.lifecycle.rules", "engine.telemetry.events"}
"""Dozens of classes each, which only an engine at work needs."""


def modules(*arguments: str) -> set[str]:
    """Modules that a command has imported when it ends."""
    run = f"import atexit; atexit.register(lambda: exec({LIST!r})); "
    code = run + "from engine.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = set(done.stderr.splitlines())
    assert "engine.cli.main" in found
    return found


@pytest.mark.parametrize("command", ["validate", "render"])
def test_commands_without_a_cluster_never_import_its_client(tmp_path: Path, command: str) -> None:
    write(
        tmp_path,
        "a.yaml",
        document(secrets={"T": {"fromEnv": "ENGINE_SECRET_A"}}, podPatch={"spec": {}}),
    )
    found = modules(command, str(tmp_path))
    assert {"engine.specdir.load", "ruamel.yaml"} <= found
    heavy = {"kubernetes", "urllib3", "matplotlib", "prometheus_client", "rich"}
    assert not heavy & {name.partition(".")[0] for name in found}
    assert not ABOUT_RUNS & found


def test_what_a_document_violates_is_said_by_jsonschema(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", document(imgae="x"))
    assert {"jsonschema", "ruamel.yaml"} <= modules("validate", str(tmp_path))


def test_a_reconcile_once_with_a_token_imports_no_kubernetes_rich_leases_nor_doctor(
    tmp_path: Path,
) -> None:
    write(tmp_path, "a.yaml", document())
    found = modules("reconcile", "--once", str(tmp_path), "--sandbox")
    assert "engine.reconcile.once" in found
    assert not {"engine.runtime.lease", "engine.inspect.doctor"} & found
    heavy = {"kubernetes", "matplotlib", "prometheus_client", "rich"}
    assert not heavy & {name.partition(".")[0] for name in found}


def test_help_imports_of_the_engine_the_list_of_commands_alone() -> None:
    found = modules("--help")
    parts = {name for name in found if name.partition(".")[0] == "engine"}
    assert parts == {"engine", "engine.cli", "engine.cli.main"}
    heavy = {"kubernetes", "jsonschema", "jinja2", "rich", "ruamel.yaml", "watchdog", "yaml"}
    assert not heavy & found


def test_a_look_at_jobs_imports_neither_rules_nor_events(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", document("done", script=None, command=["true"]))
    with Sandbox() as sandbox:
        given = ("--kubeconfig", str(sandbox.write_kubeconfig(tmp_path / "kubeconfig")))
        modules("complete", "done", "-f", str(tmp_path), "--reason", "for a test", *given)
        found = modules("status", "done", *given)
    assert "engine.cli.output" in found
    assert "jsonschema" not in found
    assert not ABOUT_RUNS & found


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"demo", "sandbox"}))
def test_the_help_of_a_command_needs_no_cluster(command: str) -> None:
    heavy = {"kubernetes", "jsonschema", "prometheus_client", "rich"}
    assert not heavy & modules(command, "--help")


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Every module, and whatever is taken out of one, by its whole name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_private_part_of_a_library_is_imported() -> None:
    private = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "engine").rglob("*.py"))
        for name in imported_names(ast.parse(path.read_text(encoding="utf-8")))
        if name.partition(".")[0] not in {"engine", "__future__"}
        and any(part.startswith("_") and part != "__version__" for part in name.split("."))
    ]
    assert private == []


def test_the_wheel_holds_schemas_and_templates(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    for folder in ("schemas", "templates"):
        shipped = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        assert shipped
        for path in shipped:
            assert f"engine/{path.relative_to(ROOT)}" in names
    assert not [name for name in names if name.startswith("tests/")]
