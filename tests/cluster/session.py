"""Which cluster a test session uses, and who stops it.

Sessions that run at the same time share one cluster. Each holds a shared lock while it runs; the
last one out stops the cluster, if a session started it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import existing, lifecycle, packages
from tests.cluster.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.cluster import Cluster

_OWNER = "tests"


def session_cluster() -> AbstractContextManager[Cluster]:
    """The cluster the environment names, else our own.

    Errors: ClusterUnavailable on entering, with one line that says why there is none.
    """
    settings = Settings.from_environment()
    named = os.environ.get("ENGINE_TEST_KUBECONFIG")
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if named and Path(named) != settings.kubeconfig:
        return _attached(Path(named))
    if assets and not named:
        return existing.from_assets(Path(assets))
    return _own(settings)


@contextmanager
def _attached(kubeconfig: Path) -> Iterator[Cluster]:
    yield existing.attach(kubeconfig)


@contextmanager
def _own(settings: Settings) -> Iterator[Cluster]:
    packages.check_machine()
    settings.state.mkdir(parents=True, exist_ok=True)
    users = os.open(settings.state / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(users, fcntl.LOCK_SH)
        yield lifecycle.up(settings, _say, owner=_OWNER).cluster
        _leave(settings, users)
    finally:
        os.close(users)


def _leave(settings: Settings, users: int) -> None:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    if lifecycle.owner_of(settings) == _OWNER:
        lifecycle.down(settings)


def _say(line: str) -> None:
    """To the terminal itself: a first build takes minutes, and pytest holds output back."""
    print(f"engine-test-cluster: {line}", file=sys.__stderr__, flush=True)
