"""Bringing clusters up and down, cleanly and otherwise, beside the one the other tests use."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster import leftovers, network
from tests.cluster.__main__ import main
from tests.cluster.fixtures import do_without
from tests.cluster.process import Identity, boot_id, end
from tests.cluster.settings import Settings
from tests.support.api import Api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.cluster import Cluster

ROOT = Path(__file__).parents[2]
_ON_THE_WAY = (
    "up.lock",
    *(f"processes/{name}" for name in ("namespace", "kube-apiserver", "node-1-kubelet")),
)
"""What `up` makes, in this order, before the cluster is complete."""


class Second:
    """A cluster with a state folder and ports of its own, driven through its commands."""

    def __init__(self) -> None:
        cache = Settings.from_environment().cache
        self.settings = Settings(cache, Path(f"/run/engine-test-second-{os.getpid()}"))

    def begin(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cluster", *command],
            cwd=ROOT,
            env={**os.environ, "ENGINE_TEST_STATE": str(self.settings.state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *command: str) -> str:
        """The command's output. Errors: AssertionError when it failed."""
        process = self.begin(*command)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
        return output

    def kill_up_at(self, file: str) -> None:
        """Kill an `up` as soon as it has made this file of the state folder.

        Errors: AssertionError when it was complete by then.
        """
        starting = self.begin("up")
        while not (self.settings.state / file).exists():
            assert starting.poll() is None, starting.communicate()[0]
            time.sleep(0.01)
        starting.kill()
        starting.communicate()
        assert not (self.settings.state / "cluster.json").exists()

    def pid_of(self, name: str) -> Identity:
        identity = Identity.read(self.settings.records / name)
        assert identity is not None
        return identity

    def api(self) -> Api:
        return Api.from_kubeconfig(self.settings.kubeconfig)

    def run_a_pod(self) -> None:
        """One that never ends, from the only image this cluster's registry has."""
        image = f"127.0.0.1:{self.settings.ports.open_registry}/pause:1"
        pod = {
            "metadata": {"name": "endless"},
            "spec": {"containers": [{"name": "main", "image": image}]},
        }
        api = self.api()
        api.create("pods", pod, "default")
        api.wait(
            lambda: api.get("pods", "endless", "default")["status"]["phase"] == "Running",
            "running pod",
        )


@pytest.fixture
def second(cluster: Cluster) -> Iterator[Second]:
    """Asks for the shared cluster first: where that can't run, neither can a second one."""
    if cluster.node is None:
        do_without("this cluster isn't ours")
    machine = Second()
    yield machine
    machine.run("down")
    if machine.settings.state.exists():
        shutil.rmtree(machine.settings.state)


def traces() -> dict[str, object]:
    """What a cluster could change on the machine."""
    listing = {
        name: subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        for name, argv in {
            "iptables": ["iptables-save"],
            "mounts": ["cat", "/proc/self/mounts"],
            "namespaces": ["ip", "netns"],
            "loopback": ["ip", "-brief", "address", "show", "dev", "lo"],
        }.items()
    }
    listing["iptables"] = re.sub(r"\[\d+:\d+\]|^#.*$", "", listing["iptables"], flags=re.MULTILINE)
    return {
        **listing,
        "hosts": Path("/etc/hosts").read_text(),
        "pod logs": Path("/var/log/pods").exists(),
        "network state": Path("/var/lib/cni").exists(),
        "kubelet": Path("/var/lib/kubelet").exists(),
    }


def wait_for_node(api: Api, name: str = "node-1") -> None:
    def usable() -> bool:
        try:
            node = api.get("nodes", name)
        except OSError:
            return False
        return any(
            one["type"] == "Ready" and one["status"] == "True"
            for one in node["status"]["conditions"]
        )

    api.wait(usable, "Ready node")


@pytest.mark.lifecycle
def test_up_and_down_may_be_repeated_and_leave_nothing_behind(second: Second) -> None:
    before = traces()

    assert "is up after" in second.run("up")
    second.run_a_pod()
    assert "is already up" in second.run("up")
    assert "stopped" not in second.run("status")
    second.run("down")
    second.run("down")

    assert leftovers.remaining(second.settings) == []
    assert traces() == before
    assert list(Path("/sys/fs/cgroup").rglob(f"*{second.settings.id}*")) == []
    left = {entry.name for entry in second.settings.state.iterdir()}
    assert left <= {"logs", "up.lock", "users.lock"}


@pytest.mark.lifecycle
@pytest.mark.parametrize("file", _ON_THE_WAY)
def test_up_that_was_killed_half_way_is_cleared_by_down(second: Second, file: str) -> None:
    before = traces()
    second.kill_up_at(file)

    second.run("down")

    assert leftovers.remaining(second.settings) == []
    assert traces() == before


@pytest.mark.lifecycle
@pytest.mark.parametrize("file", _ON_THE_WAY)
def test_up_works_after_up_was_killed_half_way(second: Second, file: str) -> None:
    second.kill_up_at(file)

    assert "is up after" in second.run("up")
    wait_for_node(second.api())


@pytest.mark.lifecycle
def test_up_starts_what_was_killed_and_keeps_the_objects(second: Second) -> None:
    second.run("up")
    second.api().create("configmaps", {"metadata": {"name": "kept"}}, "default")
    for name in ("etcd", "kube-apiserver", "node-1-kubelet", "node-1-containerd"):
        second.pid_of(name).signal(signal.SIGKILL)

    assert "is up after" in second.run("up")

    assert second.api().get("configmaps", "kept", "default")
    wait_for_node(second.api())


@pytest.mark.lifecycle
def test_up_starts_anew_when_everything_was_killed(second: Second) -> None:
    second.run("up")
    second.run_a_pod()
    for record in second.settings.records.iterdir():
        second.pid_of(record.name).signal(signal.SIGKILL)

    assert "starting anew" in second.run("up")
    second.run_a_pod()


@pytest.mark.lifecycle
def test_up_gives_a_cluster_of_one_node_the_second_that_is_asked_for(second: Second) -> None:
    second.run("up")
    assert "starting node-2-kubelet" in second.run("up", "--nodes=2")

    wait_for_node(second.api(), "node-2")
    assert "is already up" in second.run("up")
    assert second.run("status").count("node-2-") == 2
    second.run("down")

    assert leftovers.remaining(second.settings) == []


@pytest.mark.lifecycle
def test_two_clusters_that_prefer_the_same_addresses_get_others(cluster: Cluster) -> None:
    folders = (Path(f"/run/engine-test-{number}") for number in itertools.count())
    wanting = (Settings(Path(), folder) for folder in folders)
    alike = (one for one in wanting if int(one.id, 16) % 128 == 7)
    first, second = itertools.islice(alike, 2)
    try:
        for settings in (first, second, first):
            network.claim(settings)
        assert network.api_service(first) != network.api_service(second)
        assert not network.subnet(first).overlaps(network.subnet(second))
        network.remove(first)
        assert (network.has_api_service(first), network.has_api_service(second)) == (False, True)
    finally:
        for settings in (first, second):
            network.remove(settings)


@pytest.mark.lifecycle
def test_a_watch_misses_nothing_while_the_api_server_restarts(second: Second) -> None:
    second.run("up")
    with second.api().watch("configmaps", "default") as events:
        second.api().create("configmaps", {"metadata": {"name": "before"}}, "default")
        events.wait_for(lambda event: event.name == "before")
        second.pid_of("kube-apiserver").signal(signal.SIGKILL)
        second.run("up")
        second.api().create("configmaps", {"metadata": {"name": "after"}}, "default")
        events.wait_for(lambda event: event.name == "after")

    assert [event.name for event in events.events] == ["before", "after"]


def test_a_stranger_that_got_a_recorded_process_id_is_left_alone() -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        real = Identity.of(stranger.pid)
        assert real is not None
        earlier = Identity(boot_id(), stranger.pid, real.started - 1)
        another_boot = Identity("another-boot", stranger.pid, real.started)

        assert end([earlier, another_boot]) == []

        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_without_root_the_reason_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["cluster", "up"])

    assert main() == 1

    assert capsys.readouterr().err == (
        "engine-test-cluster: up failed: "
        "the test cluster needs root (mounts, cgroups, containers)\n"
    )
