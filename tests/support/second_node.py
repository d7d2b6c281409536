"""The second node of either cluster, which can be lost and come back."""

from abc import ABC, abstractmethod
from typing import Any

from engine.sandbox import FOREVER, Run
from engine.sandbox.node.node import Node as SandboxNode
from tests.cluster.node import Node
from tests.support.api import Api
from tests.support.placement import prefers_node

SILENCE = 120.0
"""Seconds, at most, until a silent node counts as unreachable."""
_UNREACHABLE = "node.kubernetes.io/unreachable"


class SecondNode(ABC):
    """Its pods' containers go on while it is lost, and no status of them arrives."""

    name: str

    @abstractmethod
    def script(self, job: str) -> str:
        """One that goes on until it is stopped on this node, and ends at once on any other."""

    def spec(self, job: str) -> dict[str, Any]:
        """A spec whose first attempt comes here and goes on until it is stopped."""
        name = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        pod = prefers_node(self.name)["podPatch"]["spec"]
        main = [{"name": "main", "env": [name]}]
        patched = {**pod, "containers": main, "terminationGracePeriodSeconds": 2}
        return {"script": self.script(job), "podPatch": {"spec": patched}}

    @abstractmethod
    def lose(self) -> None:
        """Returns once the cluster knows."""

    @abstractmethod
    def recover(self) -> None:
        """Returns once pods may come to it again."""

    def taint(self, api: Api) -> None:
        """As an administrator drives every pod from it; it is there all the same."""
        taint = {"key": "example.com/maintenance", "effect": "NoExecute"}
        api.patch("nodes", self.name, {"spec": {"taints": [taint]}}, kind="merge")


class RealSecondNode(SecondNode):
    """Its kubelet is killed, and started again."""

    def __init__(self, node: Node, api: Api) -> None:
        self.name = node.name
        self._kubelet = node.kubelet
        self._api = api

    def script(self, job: str) -> str:
        del job
        return f"case $NODE in {self.name}) trap 'exit 143' TERM; sleep 600 & wait;; esac\n"

    def lose(self) -> None:
        self._kubelet.kill()
        self._api.wait(self._is_tainted, f"a taint on {self.name}", timeout=SILENCE)

    def recover(self) -> None:
        self._kubelet.start()
        self._api.wait(lambda: not self._is_tainted(), f"{self.name} back", timeout=SILENCE)

    def _is_tainted(self) -> bool:
        taints = self._api.get("nodes", self.name)["spec"].get("taints", ())
        return any(taint["key"] == _UNREACHABLE for taint in taints)


class SimulatedSecondNode(SecondNode):
    def __init__(self, node: SandboxNode) -> None:
        self.name = node.name
        self._node = node

    def script(self, job: str) -> str:
        self._node.will(Run(duration=FOREVER, stop_exit_code=143), pod=f"{job}-*-1")
        return "does as it was told\n"

    def lose(self) -> None:
        self._node.lose()

    def recover(self) -> None:
        self._node.recover()
