"""prometheus_client is paid for by an engine that serves metrics, and by nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOLD = "import sys; print('prometheus_client' in sys.modules, file=sys.stderr)"


def has_imported(code: str, folder: Path) -> bool:
    whole = f"import atexit; atexit.register(lambda: exec({TOLD!r})); {code}"
    done = subprocess.run(
        [sys.executable, "-c", whole],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stderr.splitlines()[-1] == "True"


@pytest.mark.parametrize("command", [["--help"], ["validate", "."], ["reconcile", "--help"]])
def test_commands_that_serve_nothing_never_import_it(command: list[str], tmp_path: Path) -> None:
    code = f"import sys; sys.argv[1:] = {command!r}; from engine.cli.main import main; main()"
    assert not has_imported(code, tmp_path)


def test_no_module_that_a_manager_imports_does(tmp_path: Path) -> None:
    code = (
        "import engine.telemetry, engine.telemetry.events, engine.telemetry.metrics, "
        "engine.telemetry.health, engine.cli.printers.progress"
    )
    assert not has_imported(code, tmp_path)


def test_metrics_do(tmp_path: Path) -> None:
    assert has_imported("from engine.telemetry.metrics import Metrics; Metrics()", tmp_path)
