"""Building the cluster's programs: pinned, once, and nothing left of a build that didn't end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import build
from tests.cluster.build import Module
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.settings import CURRENT, Settings

ROOT = Path(__file__).parents[2]
KUBERNETES = {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet"}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a build has a process space of its own")


def unfinished(cache: Path) -> list[str]:
    return [found.name for found in cache.glob("building-*")]


@pytest.mark.parametrize("release", [CURRENT, "1.30"])
def test_a_releases_go_mod_says_its_version_and_its_programs(release: str) -> None:
    module = Module.of(f"kubernetes-{release}")

    assert module.version.startswith(f"v{release}.")
    assert set(module.programs) == KUBERNETES
    assert f"gitVersion={module.version}" in " ".join(module.command)


def test_whatever_decides_what_a_program_is_leads_to_another_folder(tmp_path: Path) -> None:
    original = Module.of("pause")
    other = tmp_path / "pause"
    other.mkdir()
    for file in original.folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    same = Module(other).digest("go1.26.0")
    assert same == original.digest("go1.26.0")

    assert original.digest("go1.26.1") != same
    (other / "go.sum").write_text("another\n")
    assert Module(other).digest("go1.26.0") != same


@needs_root
def test_without_a_module_proxy_the_reason_is_one_line_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(ClusterUnavailable) as refusal:
        build.ensure(Settings(tmp_path, tmp_path), lambda _line: None)

    assert "can't be built: " in str(refusal.value)
    assert "GOPROXY=off" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert {found.name for found in tmp_path.iterdir()} == {"build.lock", "build.log"}


@needs_root
def test_a_build_that_was_killed_leaves_no_compiler_and_its_files_go_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**os.environ, "ENGINE_TEST_CACHE": str(tmp_path)}
    begun = subprocess.Popen(
        [sys.executable, "-m", "tests.cluster", "build"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: any(tmp_path.glob("building-*/go/mod/cache")), "a build under way")
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    wait_until(lambda: not running_below(tmp_path), "the end of the compiler")
    assert unfinished(tmp_path)

    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(ClusterUnavailable):
        build.ensure(Settings(tmp_path, tmp_path), lambda _line: None)
    assert unfinished(tmp_path) == []


def running_below(folder: Path) -> list[int]:
    """Processes that were told to put what they make below `folder`."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            told = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if process.name.isdigit() and f"{folder}/building-".encode() in told:
            found.append(int(process.name))
    return found


def wait_until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)
