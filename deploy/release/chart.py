"""The Helm chart as one file, with the engine's version, the same each time it is made."""

import gzip
import shutil
import tarfile
import tempfile
from pathlib import Path

from deploy.release.errors import ReleaseRefusedError
from engine import __version__
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.helm import CHART, Helm
from tests.cluster.packages import Say

NAME = f"engine-chart-{__version__}.tgz"
"""Helm's own name for it differs from the sdist's in one letter."""


def package(out: Path, time: int, say: Say) -> Path:
    """Errors: ReleaseRefusedError with helm's words."""
    program = shutil.which("helm")
    try:
        helm = Helm(Path(program)) if program else Helm.find(say)
    except ClusterUnavailable as error:
        raise ReleaseRefusedError(f"there is no helm, and none can be built: {error}") from error
    versions = ("--version", __version__, "--app-version", __version__)
    with tempfile.TemporaryDirectory() as work:
        done = helm.run("package", str(CHART), "--destination", work, *versions)
        if done.returncode:
            raise ReleaseRefusedError(f"helm package failed: {done.stderr.strip()}")
        (made,) = Path(work).iterdir()
        return _with_time(made, out / NAME, time)


def _with_time(made: Path, target: Path, time: int) -> Path:
    """Helm gives each file the time of day."""
    with (
        tarfile.open(made) as source,
        target.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in source:
            entry.mtime = time
            archive.addfile(entry, source.extractfile(entry))
    return target
