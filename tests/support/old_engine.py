"""Engine 0.1 as a process: its code from the history, in an environment with what it locked."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from tests.cluster.files import exclusive
from tests.cluster.fixtures import do_without
from tests.cluster.settings import Settings
from tests.support.engine import Engine

COMMIT = "02fb5ca"
"""What ran as 0.1."""

_ROOT = Path(__file__).parents[2]
_LOCK = "requirements/run.txt"


def old(engine: Engine) -> Engine:
    """The same as 0.1 would run it. The test is skipped where there is no 0.1."""
    try:
        return replace(engine, command=_command(Settings.from_environment().cache), started=[])
    except subprocess.CalledProcessError as error:
        words = (error.stderr or b"").decode(errors="replace").strip().splitlines()
        do_without(f"0.1 can't be had: {words[-1] if words else error}")


def _command(cache: Path) -> list[str]:
    """Made once for each Python, and kept. Killed at any instant, this leaves nothing that counts.

    Errors: CalledProcessError without the history, or without a package index.
    """
    home = cache / f"engine-{COMMIT}-{sys.implementation.cache_tag}"
    with exclusive(home.with_suffix(".lock")):
        if not home.exists():
            new = home.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            _make(new, home / "source")
            new.rename(home)
    return [str(home / "bin/python"), "-P", "-m", "engine"]


def _make(home: Path, source: Path) -> None:
    """The environment, which finds the code at `source` once it is moved to its place."""
    archive = _run("git", "-C", str(_ROOT), "archive", COMMIT)
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(home / "source", filter="data")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    locked = ["--require-hashes", "--only-binary=:all:", f"--requirement={home / 'source' / _LOCK}"]
    _run(*pip, f"--python={home / 'bin/python'}", "install", *locked)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "engine.pth").write_text(f"{source}\n")


def _run(*argv: str) -> bytes:
    return subprocess.run(argv, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
