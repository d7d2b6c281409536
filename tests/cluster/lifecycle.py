"""Bringing the cluster up and taking it down, from whatever state the machine is in."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cluster import build, cgroups, leftovers, namespace, network, oci, packages
from tests.cluster.cluster import Cluster, Parts, credentials_of, parts_of, pause_image
from tests.cluster.control_plane import version_of
from tests.cluster.errors import ClusterUnavailable, ComponentFailed
from tests.cluster.files import exclusive, write
from tests.cluster.settings import NODES, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.cluster.credentials import Credentials
    from tests.cluster.node import Node

_FACTS = "cluster.json"
"""Written when the cluster is complete: without it, what runs is the rest of a killed start."""


@dataclass(frozen=True, slots=True)
class Up:
    """The outcome of `up`."""

    cluster: Cluster
    was_up: bool


def up(settings: Settings, say: packages.Say, *, owner: str = "up", nodes: int = 1) -> Up:
    """Start the cluster, or what is missing of it; everything it needs is installed first.

    Guarantees: two at once start one cluster; killed at any instant, the next `up` or `down`
    clears what it left. `owner` is remembered: a test session stops only what a session started.
    A cluster that is up with fewer nodes than `nodes` gets the others; it never loses one here.
    Errors: ClusterUnavailable with one line that says what this machine lacks.
    """
    packages.check_machine()
    packages.install(packages.missing(packages.RUN), say)
    built = build.ensure(settings, say)
    with exclusive(settings.lock) as lock:
        if facts := _facts(settings):
            if owner == "up" and facts["owner"] != owner:
                facts = {**facts, "owner": owner}
                _write_facts(settings, facts)
            try:
                return _complete(settings, facts, nodes, lock, say)
            except ClusterUnavailable as error:
                say(f"the cluster that was up can't be used, starting anew ({_first(error)})")
        return Up(_start(settings, built, owner, nodes, lock, say), was_up=False)


def down(settings: Settings) -> list[str]:
    """Stop the cluster; returns what couldn't be removed. Twice is as good as once."""
    packages.check_machine()
    if not settings.state.exists():
        return []
    with exclusive(settings.lock):
        return leftovers.clear(settings)


def status(settings: Settings) -> dict[str, bool]:
    """Which component runs; empty when the cluster isn't up."""
    facts = _facts(settings)
    if not facts:
        return {}
    return {part.name: part.alive() for part in _parts(settings, facts).components}


def owner_of(settings: Settings) -> str | None:
    return facts["owner"] if (facts := _facts(settings)) else None


@contextmanager
def another_node(settings: Settings) -> Iterator[Node]:
    """A second node while the block runs.

    Guarantees: afterwards it is gone with its pods, its processes and its name in the API.
    Assumptions: nobody else uses a second node of this cluster at the same time.
    """
    facts = _facts(settings)
    if not facts:
        raise ClusterUnavailable("the cluster isn't up")
    parts = _parts(settings, {**facts, "nodes": len(NODES)})
    added = parts.nodes[-1]
    try:
        for part in (added.containerd, added.kubelet):
            part.start()
        _await_node(parts.credentials, added, 60)
        yield added
    finally:
        parts.credentials.ask(f"/api/v1/nodes/{added.name}", method="DELETE")
        leftovers.clear_node(settings, added)


def _parts(settings: Settings, facts: Mapping[str, Any]) -> Parts:
    """Of the cluster that is up: with the programs it was started with, whatever the cache has."""
    built = {name: Path(folder) for name, folder in facts["programs"].items()}
    return parts_of(settings, built, facts["nodes"])


def _complete(
    settings: Settings, facts: dict[str, Any], nodes: int, lock: int, say: packages.Say
) -> Up:
    if nodes > facts["nodes"]:
        facts = {**facts, "nodes": nodes}
        _write_facts(settings, facts)
    parts = _parts(settings, facts)
    dead = [part for part in parts.components if not part.alive()]
    if parts.keeper in dead:
        raise ComponentFailed(parts.keeper.name, "is gone", "")
    for part in dead:
        say(f"starting {part.name}")
        part.start(lock=lock)
    parts.apiserver.wait_ready()
    for node in parts.nodes:
        _await_node(parts.credentials, node, 60)
    return Up(parts.cluster(tuple(facts["version"])), was_up=not dead)


def _start(
    settings: Settings,
    built: Mapping[str, Path],
    owner: str,
    nodes: int,
    lock: int,
    say: packages.Say,
) -> Cluster:
    if left := leftovers.clear(settings):
        raise ClusterUnavailable(f"an earlier cluster can't be removed: {', '.join(left)}")
    say("starting the cluster")
    try:
        _prepare(settings, built)
        parts = _boot(parts_of(settings, built, nodes), lock)
    except BaseException:
        leftovers.clear(settings)
        raise
    version = version_of(parts.credentials.ask("/version").body)
    programs = {name: str(folder) for name, folder in built.items()}
    facts = {"owner": owner, "version": version, "nodes": nodes, "programs": programs}
    _write_facts(settings, facts)
    return parts.cluster(version)


def _prepare(settings: Settings, built: Mapping[str, Path]) -> None:
    for folder in (settings.logs, settings.records, settings.data):
        folder.mkdir(parents=True, exist_ok=True)
    for old in settings.logs.iterdir():
        old.unlink()
    leftovers.remember_sysctls(settings)
    cgroups.create(settings)
    network.claim(settings)
    namespace.prepare(settings, built)
    credentials_of(settings).create()


def _boot(parts: Parts, lock: int) -> Parts:
    """Everything that can start at once does: the API server takes some seconds before it serves,
    and what waits for it tries again by itself.
    """
    parts.keeper.start(lock=lock)
    registries = [registry.component for registry in parts.registries]
    runtimes = [node.containerd for node in parts.nodes]
    for part in (parts.etcd, parts.apiserver, *registries, *runtimes):
        part.start(wait=False, lock=lock)
    parts.registries[0].component.wait_ready()
    _push_pause(parts)
    parts.apiserver.wait_ready()
    for part in parts.components:
        part.start(wait=False, lock=lock)
    for part in parts.components:
        part.wait_ready()
    for node in parts.nodes:
        _await_node(parts.credentials, node, 60)
    return parts


def _push_pause(parts: Parts) -> None:
    pause = (parts.programs.outside["pause"] / "pause").read_bytes()
    image = oci.Image.of(oci.layer({"pause": pause}, {}, ()), entrypoint=["/pause"])
    oci.push(image, pause_image(parts.registries[0]))


def _await_node(credentials: Credentials, node: Node, timeout: float) -> None:
    """Until the node is Ready and free of the taint every node begins with."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with suppress(OSError):
            reply = credentials.ask(f"/api/v1/nodes/{node.name}")
            if reply.code == 200 and _usable(reply.body):
                return
        time.sleep(0.05)
    cause = f"{node.name} not Ready after {timeout:.0f} s"
    raise ComponentFailed(node.kubelet.name, cause, node.kubelet.log_tail())


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
