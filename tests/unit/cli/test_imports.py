"""What a command imports is what a user waits for."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine.cli.main import COMMANDS
from tests.unit.builders import document, write

ROOT = Path(__file__).parents[3]
LIST = "import sys; sys.stderr.write('\\n'.join(sys.modules))"


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
    assert "engine.specdir.load" in found
    heavy = {"kubernetes", "urllib3", "jsonschema", "matplotlib", "prometheus_client"}
    assert not heavy & {name.partition(".")[0] for name in found}


def test_a_reconcile_never_imports_the_typed_models(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", document())
    found = modules("reconcile", "--once", str(tmp_path), "--sandbox")
    assert "kubernetes.client.rest" in found
    assert "engine.reconcile.once" in found
    assert not [name for name in found if "core_v1_api" in name]
    heavy = {"jsonschema", "matplotlib", "prometheus_client"}
    assert not heavy & {name.partition(".")[0] for name in found}


def test_help_imports_neither_the_client_nor_the_schema_nor_templates() -> None:
    found = modules("--help")
    heavy = {"kubernetes", "jsonschema", "jinja2", "ruamel.yaml", "watchdog"}
    assert not heavy & found


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"demo", "sandbox"}))
def test_the_help_of_a_command_needs_no_cluster(command: str) -> None:
    heavy = {"kubernetes", "jsonschema", "prometheus_client"}
    assert not heavy & modules(command, "--help")


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
