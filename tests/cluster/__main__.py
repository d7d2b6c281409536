"""`python -m tests.cluster up|down|status|build`, and `lock 1.36.3` for another version."""

# ruff: noqa: T201 - a command prints
from __future__ import annotations

import argparse
import sys
import time

from tests.cluster import build, lifecycle, lock_kubernetes, packages
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.settings import Settings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = {"down": _down, "status": _status, "build": _build}
    parser.add_argument("command", choices=["up", *commands, "lock"])
    parser.add_argument("version", nargs="?", help="of Kubernetes, for lock")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="how many, for up")
    arguments = parser.parse_args()
    chosen = arguments.command
    settings = Settings.from_environment()
    try:
        if chosen == "up":
            return _up(settings, arguments.nodes)
        if chosen == "lock":
            print(lock_kubernetes.lock(arguments.version or "", settings.cache, _say))
            return 0
        return commands[chosen](settings)
    except ClusterUnavailable as error:
        _say(f"{chosen} failed: {error}")
        return 1


def _up(settings: Settings, nodes: int) -> int:
    begun = time.monotonic()
    outcome = lifecycle.up(settings, _say, nodes=nodes)
    took = "is already up" if outcome.was_up else f"is up after {time.monotonic() - begun:.1f} s"
    _say(f"the cluster {took}; logs: {settings.logs}")
    print(f"export ENGINE_TEST_KUBECONFIG={outcome.cluster.kubeconfig}")
    return 0


def _down(settings: Settings) -> int:
    left = lifecycle.down(settings)
    for trace in left:
        _say(f"left behind: {trace}")
    _say(f"the cluster is down; logs: {settings.logs}")
    return 1 if left else 0


def _status(settings: Settings) -> int:
    parts = lifecycle.status(settings)
    for name, runs in parts.items():
        print(f"{name}\t{'running' if runs else 'stopped'}")
    if not parts:
        print("down")
    return 0 if parts and all(parts.values()) else 3


def _build(settings: Settings) -> int:
    packages.check_machine()
    packages.install(packages.missing(packages.RUN), _say)
    for folder in build.ensure(
        settings, _say, {**build.modules(settings), **build.tools()}
    ).values():
        print(folder)
    return 0


def _say(line: str) -> None:
    print(f"engine-test-cluster: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
