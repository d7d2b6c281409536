"""What is published: built from the sdist alone, installed as a user does, run in an empty folder.

Installing asks the package index, as pip is configured; without one the test is skipped. It is
shown on the Python that runs the tests; with ENGINE_PACKAGE_PYTHONS=all, as `make soak` has it, on
every one of this machine.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from engine import __version__
from tests.cluster.fixtures import do_without
from tests.package.conftest import LONG, ROOT, install, run

NAMES = ("python3.11", "python3.12", "python3.13", "python3.14", "python3.15")
_THIS = f"python3.{sys.version_info.minor}"


def pythons() -> dict[str, str]:
    """Every supported Python of this machine that runs, newest last."""
    shims = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin")
    path = os.pathsep.join([*os.get_exec_path(), *map(str, sorted(shims))])
    found = {}
    for name in NAMES:
        for folder in path.split(os.pathsep):
            program = shutil.which(name, path=folder)
            if program and works(program):
                found[name] = program
                break
    return found


def works(program: str) -> bool:
    """A name on PATH proves nothing: version managers leave stubs there that only fail."""
    code = "import ensurepip, venv"
    return subprocess.run([program, "-c", code], capture_output=True, check=False).returncode == 0


def use(engine: Path, folder: Path) -> None:
    """The first things that somebody does, in an empty folder."""
    told = run(engine, "version", "--client", folder=folder)
    assert told.stdout.startswith(f"engine {__version__} "), told.stderr
    assert run(engine, "init", "build", folder=folder).stdout == "jobs/build.yaml\n"
    assert run(engine, "validate", "jobs", folder=folder).stdout == "1 job, all valid\n"
    assert "kind: Pod" in run(engine, "render", "jobs", folder=folder).stdout
    assert "ONE OF" in run(engine, "explain", "spec.pullPolicy", folder=folder).stdout
    ran = run(engine, "reconcile", "--once", "jobs", "--sandbox", "-o", "json", folder=folder)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["jobs"][0]["state"] == "Succeeded"


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    assert "engine/py.typed" in names
    for folder in ("schemas", "templates", "examples"):
        shipped = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        assert shipped
        assert {f"engine/{path.relative_to(ROOT)}" for path in shipped} <= names
    code = {str(path.relative_to(ROOT)) for path in (ROOT / "engine").rglob("*.py")}
    assert code <= names
    assert {name.split("/")[0] for name in names} == {"engine", f"engine-{__version__}.dist-info"}


@pytest.mark.programs
@pytest.mark.timeout(2 * LONG)
@pytest.mark.parametrize("python", NAMES)
def test_it_runs_in_a_fresh_venv_from_an_empty_folder(
    python: str, wheel: Path, tmp_path: Path
) -> None:
    program = pythons().get(python)
    if os.environ.get("ENGINE_PACKAGE_PYTHONS") != "all" and python != _THIS:
        pytest.skip("left to make soak")
    if program is None:
        pytest.skip(f"there is no {python} on this machine")
    made = run(program, "-m", "venv", "venv", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    binaries = tmp_path / "venv" / "bin"
    install(wheel, tmp_path, binaries / "python", "-m", "pip", "install", "--quiet")
    empty = tmp_path / "empty"
    empty.mkdir()
    use(binaries / "engine", empty)


@pytest.mark.programs
@pytest.mark.soak
@pytest.mark.timeout(2 * LONG)
def test_it_runs_with_pipx_from_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    if shutil.which("pipx") is None:
        do_without("there is no pipx on this machine")
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    done = run("pipx", "install", wheel, folder=tmp_path, **places)
    assert done.returncode == 0, done.stdout + done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    use(tmp_path / "bin" / "engine", empty)
