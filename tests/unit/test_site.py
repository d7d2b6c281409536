"""The documentation is a site in which every link and anchor leads somewhere."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.pages import ROOT


def test_mkdocs_builds_all_pages_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("INFO    -  Doc file")]
    assert said == []
    for page in ("index.html", "docs/troubleshooting.html", "examples/ci/.gitlab-ci.yml"):
        assert (tmp_path / page).is_file(), page
