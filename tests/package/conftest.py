"""The wheel as it is published, built from the sdist alone, and how it is installed and run."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG = 600
"""Seconds."""
_NO_INDEX = ("NewConnectionError", "Temporary failure", "ReadTimeout", "ProxyError", "No route to")


def run(*command: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Without anything of this project's in the environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ENGINE_", "PYTHON", "KUBE", "VIRTUAL_ENV"))
    }
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the unpacked sdist, where nothing else of the repository is."""
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "hatchling", "build", "-d", folder, "-t")
    made = run(*build, "sdist", folder=ROOT)
    assert made.returncode == 0, made.stderr
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (unpacked,) = (folder / "sdist").iterdir()
    made = run(*build, "wheel", folder=unpacked)
    assert made.returncode == 0, made.stderr
    (found,) = folder.glob("*.whl")
    return found


def install(wheel: Path, folder: Path, *command: str | Path) -> None:
    """Errors: AssertionError; skipped where there is no package index."""
    done = run(*command, wheel, folder=folder)
    if done.returncode and any(words in done.stdout + done.stderr for words in _NO_INDEX):
        pytest.skip("the package index can't be reached")
    assert done.returncode == 0, done.stdout + done.stderr
