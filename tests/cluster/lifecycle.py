"""Bringing the cluster up and taking it down, from whatever state the machine is in."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.cluster import build, cgroups, leftovers, namespace, oci, packages
from tests.cluster.cluster import Cluster, Parts, credentials_of, parts_of, pause_image
from tests.cluster.control_plane import version_of
from tests.cluster.errors import ClusterUnavailable, ComponentFailed
from tests.cluster.files import exclusive, write
from tests.cluster.settings import NODE, Settings

_FACTS = "cluster.json"
"""Written when the cluster is complete: without it, what runs is the rest of a killed start."""


@dataclass(frozen=True, slots=True)
class Up:
    """The outcome of `up`."""

    cluster: Cluster
    was_up: bool


def up(settings: Settings, say: packages.Say, *, owner: str = "up") -> Up:
    """Start the cluster, or what is missing of it; everything it needs is installed first.

    Guarantees: two at once start one cluster; killed at any instant, the next `up` or `down`
    clears what it left. `owner` is remembered: a test session stops only what a session started.
    Errors: ClusterUnavailable with one line that says what this machine lacks.
    """
    packages.check_machine()
    packages.install(packages.missing(packages.RUN), say)
    build.ensure(settings, say)
    with exclusive(settings.lock) as lock:
        if facts := _facts(settings):
            if owner == "up" and facts["owner"] != owner:
                _write_facts(settings, {**facts, "owner": owner})
            try:
                return _complete(settings, facts, lock, say)
            except ClusterUnavailable as error:
                say(f"the cluster that was up can't be used, starting anew ({_first(error)})")
        return Up(_start(settings, lock, owner, say), was_up=False)


def down(settings: Settings) -> list[str]:
    """Stop the cluster; returns what couldn't be removed. Twice is as good as once."""
    packages.check_machine()
    if not settings.state.exists():
        return []
    with exclusive(settings.lock):
        return leftovers.clear(settings)


def status(settings: Settings) -> dict[str, bool]:
    """Which component runs; empty when the cluster isn't up."""
    if not _facts(settings):
        return {}
    return {part.name: part.alive() for part in parts_of(settings).components}


def owner_of(settings: Settings) -> str | None:
    return facts["owner"] if (facts := _facts(settings)) else None


def _complete(settings: Settings, facts: dict[str, Any], lock: int, say: packages.Say) -> Up:
    parts = parts_of(settings)
    dead = [part for part in parts.components if not part.alive()]
    if parts.keeper in dead:
        raise ComponentFailed(parts.keeper.name, "is gone", "")
    for part in dead:
        say(f"starting {part.name} again")
        part.start(lock=lock)
    parts.apiserver.wait_ready()
    _await_node(parts, 60)
    return Up(parts.cluster(tuple(facts["version"])), was_up=not dead)


def _start(settings: Settings, lock: int, owner: str, say: packages.Say) -> Cluster:
    if left := leftovers.clear(settings):
        raise ClusterUnavailable(f"an earlier cluster can't be removed: {', '.join(left)}")
    say("starting the cluster")
    try:
        _prepare(settings)
        parts = _boot(settings, lock)
    except BaseException:
        leftovers.clear(settings)
        raise
    version = version_of(parts.credentials.ask("/version").json())
    _write_facts(settings, {"owner": owner, "version": version})
    return parts.cluster(version)


def _prepare(settings: Settings) -> None:
    for folder in (settings.logs, settings.records, settings.data):
        folder.mkdir(parents=True, exist_ok=True)
    for old in settings.logs.iterdir():
        old.unlink()
    leftovers.remember_sysctls(settings)
    cgroups.create(settings)
    namespace.prepare(settings)
    credentials_of(settings).create()


def _boot(settings: Settings, lock: int) -> Parts:
    """Everything that can start at once does.

    The API server takes some seconds before it serves, and the kubelet looks for a Docker daemon
    for five before it asks for a server.
    """
    parts = parts_of(settings)
    parts.keeper.start(lock=lock)
    registries = [registry.component for registry in parts.registries]
    first = (parts.etcd, parts.apiserver, *registries, parts.node.containerd, parts.node.kubelet)
    for part in first:
        part.start(wait=False, lock=lock)
    parts.registries[0].component.wait_ready()
    _push_pause(settings, parts)
    parts.apiserver.wait_ready()
    for part in parts.components:
        part.start(wait=False, lock=lock)
    for part in parts.components:
        part.wait_ready()
    _await_node(parts, 60)
    return parts


def _push_pause(settings: Settings, parts: Parts) -> None:
    pause = (settings.binaries / "pause").read_bytes()
    image = oci.Image.of(oci.layer({"pause": pause}, {}, ()), entrypoint=["/pause"])
    oci.push(image, pause_image(parts.registries[0]))


def _await_node(parts: Parts, timeout: float) -> None:
    """Until the node is Ready and free of the taint every node begins with."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with suppress(OSError):
            reply = parts.credentials.ask(f"/api/v1/nodes/{NODE}")
            if reply.status == 200 and _usable(reply.json()):
                return
        time.sleep(0.05)
    kubelet = parts.node.kubelet
    raise ComponentFailed("kubelet", f"node not Ready after {timeout:.0f} s", kubelet.log_tail())


def _usable(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not node["spec"].get("taints")


def _facts(settings: Settings) -> dict[str, Any] | None:
    try:
        facts: dict[str, Any] = json.loads((settings.state / _FACTS).read_text())
    except (OSError, ValueError):
        return None
    return facts


def _write_facts(settings: Settings, facts: dict[str, Any]) -> None:
    write(settings.state / _FACTS, json.dumps(facts))


def _first(error: Exception) -> str:
    return str(error).splitlines()[0]
