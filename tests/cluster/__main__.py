"""`python -m tests.cluster up|down|status|build`."""

# ruff: noqa: T201 - a command prints
from __future__ import annotations

import argparse
import sys
import time

from tests.cluster import build, lifecycle, packages
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.settings import Settings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = {"up": _up, "down": _down, "status": _status, "build": _build}
    parser.add_argument("command", choices=commands)
    chosen = parser.parse_args().command
    try:
        return commands[chosen](Settings.from_environment())
    except ClusterUnavailable as error:
        _say(f"{chosen} failed: {error}")
        return 1


def _up(settings: Settings) -> int:
    begun = time.monotonic()
    outcome = lifecycle.up(settings, _say)
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
    build.ensure(settings, _say)
    print(settings.binaries)
    return 0


def _say(line: str) -> None:
    print(f"engine-test-cluster: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
