"""The sdist and the wheel, the same each time they are built of one commit."""

import os
import subprocess
import sys
from pathlib import Path

from deploy.release.errors import ReleaseRefusedError
from deploy.release.tree import ROOT


def build(out: Path, time: int) -> None:
    """Errors: ReleaseRefusedError with the last of the builder's words."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
    for target in ("sdist", "wheel"):
        done = subprocess.run(
            [*command, "-t", target], cwd=ROOT, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise ReleaseRefusedError(f"the {target} can't be built: {done.stderr.strip()}")
