"""The pods that the tests of the node look at, on the simulated node and on a real one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.sandbox import FOREVER, Run, Sandbox
from tests.support.client import Client, Obj

KEY = {"configMapKeyRef": {"name": "settings", "key": "absent"}}
MOUNT = [{"name": "v", "mountPath": "/v"}]
SIZE = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}}
ENDED = {"Succeeded", "Failed"}
STABLE = ("succeeds", "fails", "late", "prepared", "sized")


@dataclass
class Stage:
    """The pods of this module, and everything that was seen of them."""

    client: Client
    root: str
    host: str
    private: str
    seen: dict[str, list[Obj]] = field(default_factory=dict)

    def start(self, name: str, command: str = "true", /, **more: Any) -> None:
        main = {"name": "main", "image": f"{self.host}/busybox:1", "command": ["sh", "-c", command]}
        main.update(more.pop("main", {}))
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main]}
        spec.update(more)
        made = self.client.post(f"{self.root}/pods", {"metadata": {"name": name}, "spec": spec})
        assert made.code == 201, made.body

    def note(self, pod: Obj) -> None:
        self.seen.setdefault(pod["metadata"]["name"], []).append(pod)

    def phase(self, name: str) -> str:
        return str(self.seen[name][-1]["status"].get("phase"))

    def waited(self, name: str, which: str = "containerStatuses") -> list[tuple[str, str]]:
        """The reasons and messages for which the first container waited, in order, each once."""
        out: list[tuple[str, str]] = []
        for pod in self.seen.get(name, ()):
            for status in pod["status"].get(which, ())[:1]:
                if waiting := status["state"].get("waiting"):
                    told = (waiting["reason"], waiting.get("message", ""))
                    if told not in out:
                        out.append(told)
        return out

    def reasons(self, name: str) -> list[str]:
        return list(dict.fromkeys(reason for reason, _ in self.waited(name)))

    def exit(self, name: str) -> Obj:
        (status,) = self.seen[name][-1]["status"]["containerStatuses"]
        ended: Obj = status["state"]["terminated"]
        return ended


def simulated() -> Sandbox:
    """A sandbox that is set up as the real node and its registries are."""
    sandbox = Sandbox()
    sandbox.images.registry("open.example:5000", images=["busybox:1"])
    sandbox.images.registry("private.example:5000", users={"ci": "right-password"})
    sandbox.images.down("127.0.0.1:9")
    sandbox.images.down("no-such-host.invalid", "no-such-host")
    for name, code in (("fails", 3), ("restarts", 3)):
        sandbox.node.will(Run(exit_code=code), pod=name)
    for name in ("late", "deleted", "service"):
        sandbox.node.will(Run(duration=FOREVER, stop=FOREVER), pod=name)
    sandbox.node.will(
        Run(start_error='exec: "/nope": no such file or directory'), pod="unstartable"
    )
    return sandbox


def played(stage: Stage) -> Stage:
    """Start all the pods at once and watch until each has shown what it is here for."""
    begin = stage.client.get(f"{stage.root}/pods").rv
    stage.client.post(
        f"{stage.root}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "b"}}
    )
    stage.start("succeeds")
    stage.start("fails", "exit 3")
    stage.start("restarts", "exit 3", restartPolicy="OnFailure")
    stage.start("unstartable", main={"command": ["/nope"]})
    stage.start("missing", main={"image": f"{stage.host}/absent:1"})
    stage.start("down", main={"image": "127.0.0.1:9/x:1"})
    stage.start("nohost", main={"image": "no-such-host.invalid/x:1"})
    stage.start("private", main={"image": f"{stage.private}/x:1"})
    stage.start("never", main={"image": f"{stage.host}/other:1", "imagePullPolicy": "Never"})
    stage.start("badname", main={"image": "Bad//Name::"})
    stage.start("noenv", main={"envFrom": [{"secretRef": {"name": "absent"}}]})
    stage.start("nokey", main={"env": [{"name": "X", "valueFrom": KEY}]})
    stage.start(
        "novolume",
        volumes=[{"name": "v", "secret": {"secretName": "absent"}}],
        main={"volumeMounts": MOUNT},
    )
    stage.start("unmounted", volumes=[{"name": "v", "secret": {"secretName": "absent"}}])
    stage.start("late", "sleep 1000", activeDeadlineSeconds=3)
    first = {"name": "first", "image": f"{stage.host}/busybox:1", "command": ["sh", "-c", "true"]}
    stage.start("prepared", initContainers=[first])
    stage.start("unprepared", initContainers=[{**first, "image": f"{stage.host}/absent:1"}])
    stage.start("deleted", "sleep 1000")
    stage.start("sized", main={"resources": SIZE})
    query: Obj = {"resourceVersion": begin, "timeoutSeconds": 60}
    with stage.client.watch(f"{stage.root}/pods", **query) as watch:
        for event in watch:
            pod = event["object"]
            stage.note(pod)
            if event["type"] == "DELETED":
                pod["gone"] = True
            elif pod["metadata"]["name"] == "deleted" and pod["status"].get("phase") == "Running":
                stage.client.delete(f"{stage.root}/pods/deleted")
            if shown(stage):
                return stage
    return stage


def shown(stage: Stage) -> bool:
    if len(stage.seen) < 19:
        return False
    back_off = {"missing", "down", "nohost", "private"}
    return (
        all(stage.phase(name) in ENDED for name in STABLE)
        and stage.phase("unmounted") in ENDED
        and stage.phase("unstartable") in ENDED
        and all("ImagePullBackOff" in stage.reasons(name) for name in back_off)
        and all(len(stage.waited(name)) > 1 for name in ("never", "badname", "noenv", "nokey"))
        and len(stage.waited("unprepared", "initContainerStatuses")) > 2
        and "CrashLoopBackOff" in stage.reasons("restarts")
        and "gone" in stage.seen["deleted"][-1]
    )
