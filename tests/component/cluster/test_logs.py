"""Logs are read whole, however slow, long or broken off they come."""

from pathlib import Path

from engine.cluster.connect import connect
from engine.cluster.logs import LogFollower
from engine.refs import Ref
from engine.sandbox import FOREVER, Run, Sandbox
from tests.component.sandbox.conftest import ci, sandbox
from tests.support.sandbox_namespace import Namespace

__all__ = ["ci", "sandbox"]

POD = Ref("Pod", "ci", "job")


def test_each_line_comes_once_through_connections_that_fall_silent(
    ci: Namespace, sandbox: Sandbox, tmp_path: Path
) -> None:
    client = connect(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig"))).client
    sandbox.node.will(Run(duration=FOREVER, log=("first", "second", "second", "")), pod="job")
    ci.start()
    ci.advance(1.0)
    follower = LogFollower(client, POD, "main", timeout=0.3)
    told: list[bytes] = []
    while len(told) < 4:
        told += follower.lines()
    assert told == [b"first\n", b"second\n", b"second\n", b"\n"]
    assert list(follower.lines()) == []
    last = LogFollower(client, POD, "main", tail=1, timeout=3)
    assert list(last.lines()) == [b"\n"]
