"""README's five steps, as they are written: on a real cluster, from an empty folder, by the wheel.

What README says is printed is compared; ids, ages and addresses may be others. Of what is typed one
thing is another: a test cluster has no way to docker.io, so that the spec which `engine init` has
written names an image of its own.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.images import Images
from tests.package.conftest import ROOT, install, run
from tests.support.api import Api
from tests.support.console import Command, NotRun, comparable, fits, steps_of

pytestmark = [
    pytest.mark.node,
    pytest.mark.registry,
    pytest.mark.alone,
    pytest.mark.timeout(1200),
]
SECTION = "## On your cluster in five steps\n"
NAMESPACE = "ci"
WRITTEN, IMAGE = "jobs/build.yaml", "docker.io/library/alpine:3.20"


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """Folder of the programs of a fresh venv that has the wheel."""
    made = run(sys.executable, "-m", "venv", "venv", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    binaries = tmp_path / "venv" / "bin"
    install(wheel, tmp_path, binaries / "python", "-m", "pip", "install", "--quiet")
    return binaries


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A copy that the steps may change; the namespace that they create goes afterwards."""
    copy = tmp_path / "kubeconfig"
    shutil.copy(cluster.kubeconfig, copy)
    yield copy
    api = Api.from_kubeconfig(cluster.kubeconfig)
    api.client.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    api.wait(lambda: api.find("namespaces", NAMESPACE) is None or None, "end of the namespace", 120)


def test_the_five_steps_do_what_readme_says(
    cluster: Cluster, images: Images, installed: Path, kubeconfig: Path, tmp_path: Path
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    steps = [*steps_of(text.split(SECTION)[1].split("\n## ")[0])]
    commands = [step for step in steps if isinstance(step, Command)]
    assert commands, "README has no steps"
    assert not [step for step in steps if isinstance(step, NotRun)]
    assert cluster.kubectl is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(cluster.kubectl)
    folder = tmp_path / "empty"
    folder.mkdir()
    wrong = []
    for command in commands:
        printed = typed(command.words, folder, tmp_path / "bin", installed, kubeconfig)
        if not fits(command.printed, printed):
            told = comparable(command.printed)
            wrong.append("\n".join([f"$ {command.words}", *told, "-- printed:", *printed]))
        if command.words.startswith("engine init"):
            spec = folder / WRITTEN
            assert IMAGE in spec.read_text(encoding="utf-8")
            spec.write_text(spec.read_text(encoding="utf-8").replace(IMAGE, images.busybox))
    assert not wrong, "\n\n".join(wrong)


def typed(words: str, folder: Path, *path: Path) -> list[str]:
    """All that a command prints; the last of `path` is the kubeconfig."""
    *programs, kubeconfig = path
    foreign = ("ENGINE_", "PYTHON", "KUBE", "VIRTUAL_ENV", "CI", "GITHUB_", "GITLAB_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    done = subprocess.run(
        ["bash", "-c", words],
        cwd=folder,
        env={
            **kept,
            "PATH": os.pathsep.join([*map(str, programs), kept["PATH"]]),
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(folder),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout.splitlines()
