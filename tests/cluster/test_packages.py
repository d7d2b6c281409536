"""Debian's packages are installed as soon as another apt lets go of its locks."""

import os
from pathlib import Path

import pytest

from tests.cluster import packages
from tests.cluster.errors import ClusterUnavailable

INDEX = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
DPKG = "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend)"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lines of what apt-get was asked for; it fails as long as there are lines in `refusals`."""
    program = tmp_path / "apt-get"
    program.write_text(
        f'#!/bin/sh\ncd {tmp_path}\necho "$4" >>calls\n'
        "if [ -s refusals ]; then head -n 1 refusals >&2; sed -i 1d refusals; exit 100; fi\n"
    )
    program.chmod(0o755)
    (tmp_path / "refusals").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(packages, "_BETWEEN_LOCKS", 0.01)
    monkeypatch.setattr(packages, "_POLICY", tmp_path / "policy")
    return tmp_path / "calls"


@pytest.mark.parametrize("lock", [INDEX, DPKG])
def test_a_lock_is_waited_for(calls: Path, lock: str) -> None:
    calls.with_name("refusals").write_text(f"{lock}\n{lock}\n")
    packages.install(["tmux"], lambda _line: None)
    assert calls.read_text().split() == ["update", "update", "update", "install"]


def test_another_failure_is_reported_at_once(calls: Path) -> None:
    calls.with_name("refusals").write_text("E: Unable to locate package tmux\n")
    with pytest.raises(ClusterUnavailable, match="Unable to locate package tmux"):
        packages.install(["tmux"], lambda _line: None)
    assert calls.read_text().split() == ["update"]
