"""The node: the same pods on the simulated and on a real one go through the same states."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.sandbox import FOREVER, Run, Sandbox
from tests.contract.client import Client, Obj, eventually

KEY = {"configMapKeyRef": {"name": "settings", "key": "absent"}}
MOUNT = [{"name": "v", "mountPath": "/v"}]
ENDED = {"Succeeded", "Failed"}


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


@pytest.fixture(
    scope="module",
    params=[
        "sandbox",
        pytest.param("real", marks=[pytest.mark.cluster, pytest.mark.node, pytest.mark.registry]),
    ],
)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    name = f"node-{uuid.uuid4().hex[:8]}"
    if request.param == "sandbox":
        with simulated() as sandbox:
            sandbox.namespace(name)
            root = f"/api/v1/namespaces/{name}"
            yield played(
                Stage(Client(sandbox.url), root, "open.example:5000", "private.example:5000")
            )
        return
    try:
        cluster = request.getfixturevalue("cluster")
    except pytest.FixtureLookupError:
        pytest.skip("no real cluster: the plugin tests.cluster.fixtures isn't loaded")
    if cluster.open_registry is None or cluster.private_registry is None:
        pytest.skip("this cluster has no registries of its own")
    client = Client.from_kubeconfig(cluster.kubeconfig)
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    root = f"/api/v1/namespaces/{name}"
    try:
        yield played(Stage(client, root, cluster.open_registry.host, cluster.private_registry.host))
    finally:
        client.delete(f"{root}/pods", {"gracePeriodSeconds": 0})
        client.delete(root)


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
    if len(stage.seen) < 18:
        return False
    back_off = {"missing", "down", "nohost", "private"}
    return (
        all(stage.phase(name) in ENDED for name in ("succeeds", "fails", "late", "prepared"))
        and stage.phase("unmounted") in ENDED
        and stage.phase("unstartable") in ENDED
        and all("ImagePullBackOff" in stage.reasons(name) for name in back_off)
        and all(len(stage.waited(name)) > 1 for name in ("never", "badname", "noenv", "nokey"))
        and len(stage.waited("unprepared", "initContainerStatuses")) > 2
        and "CrashLoopBackOff" in stage.reasons("restarts")
        and "gone" in stage.seen["deleted"][-1]
    )


def test_a_pod_that_succeeds(stage: Stage) -> None:
    assert stage.reasons("succeeds") == ["ContainerCreating"]
    assert stage.phase("succeeds") == "Succeeded"
    assert (stage.exit("succeeds")["exitCode"], stage.exit("succeeds")["reason"]) == (
        0,
        "Completed",
    )


def test_a_pod_that_fails(stage: Stage) -> None:
    assert stage.phase("fails") == "Failed"
    assert (stage.exit("fails")["exitCode"], stage.exit("fails")["reason"]) == (3, "Error")
    assert "reason" not in stage.seen["fails"][-1]["status"]


def test_a_container_that_cannot_start(stage: Stage) -> None:
    ended = stage.exit("unstartable")
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert "/nope" in ended["message"]
    assert ended["startedAt"] == "1970-01-01T00:00:00Z"


def test_a_container_that_is_started_again(stage: Stage) -> None:
    reason, message = stage.waited("restarts")[-1]
    assert reason == "CrashLoopBackOff"
    assert message.startswith("back-off 10s restarting failed container=main pod=restarts_")
    assert stage.phase("restarts") == "Running"


@pytest.mark.parametrize("name", ["missing", "down", "nohost", "private"])
def test_a_failing_pull_tells_its_cause_before_it_backs_off(stage: Stage, name: str) -> None:
    assert stage.reasons(name)[:3] == ["ContainerCreating", "ErrImagePull", "ImagePullBackOff"]
    cause, back_off = stage.waited(name)[1:3]
    assert cause[1].startswith("rpc error: code = ")
    assert "failed to pull and unpack image" in cause[1]
    assert back_off[1].startswith('Back-off pulling image "')
    assert "rpc error" not in back_off[1]
    assert stage.phase(name) == "Pending"


def test_the_words_of_a_missing_image(stage: Stage) -> None:
    image = f"{stage.host}/absent:1"
    assert stage.waited("missing")[1][1] == (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": failed to '
        f'resolve reference "{image}": {image}: not found'
    )


def test_the_words_of_a_registry_out_of_reach(stage: Stage) -> None:
    assert "connect: connection refused" in stage.waited("down")[1][1]
    assert "no such host" in stage.waited("nohost")[1][1]


def test_never_without_the_image(stage: Stage) -> None:
    assert stage.waited("never")[1] == (
        "ErrImageNeverPull",
        f'Container image "{stage.host}/other:1" is not present with pull policy of Never',
    )


def test_a_name_that_is_none(stage: Stage) -> None:
    assert stage.waited("badname")[1] == (
        "InvalidImageName",
        (
            'Failed to apply default image tag "Bad//Name::": couldn\'t parse image reference '
            '"Bad//Name::": invalid reference format: repository name must be lowercase'
        ),
    )


def test_a_missing_secret_or_key_of_the_environment(stage: Stage) -> None:
    assert stage.waited("noenv")[1] == ("CreateContainerConfigError", 'secret "absent" not found')
    namespace = stage.root.rpartition("/")[2]
    assert stage.waited("nokey")[1] == (
        "CreateContainerConfigError",
        f"couldn't find key absent in ConfigMap {namespace}/settings",
    )


def test_a_missing_volume_only_keeps_the_pod_creating(stage: Stage) -> None:
    assert stage.waited("novolume") == [("ContainerCreating", "")]
    assert stage.phase("novolume") == "Pending"


def test_a_volume_that_nobody_mounts_is_not_needed(stage: Stage) -> None:
    assert stage.phase("unmounted") == "Succeeded"


def test_a_deadline(stage: Stage) -> None:
    status = stage.seen["late"][-1]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


def test_init_containers_go_first(stage: Stage) -> None:
    assert stage.reasons("prepared") == ["PodInitializing"]
    assert stage.phase("prepared") == "Succeeded"
    waited = stage.waited("unprepared", "initContainerStatuses")
    assert [reason for reason, _ in waited][:3] == [
        "PodInitializing",
        "ErrImagePull",
        "ImagePullBackOff",
    ]
    assert stage.reasons("unprepared") == ["PodInitializing"]


def test_a_deleted_pod_shows_its_deletion_and_goes(stage: Stage) -> None:
    marked = [pod for pod in stage.seen["deleted"] if "deletionTimestamp" in pod["metadata"]]
    assert marked[0]["metadata"]["deletionGracePeriodSeconds"] == 1
    assert stage.client.get(f"{stage.root}/pods/deleted").code == 404


def test_the_kubelets_last_delete_has_no_grace_and_a_time_of_its_own(stage: Stage) -> None:
    marked = [pod for pod in stage.seen["deleted"] if "deletionTimestamp" in pod["metadata"]]
    first, last = marked[0]["metadata"], marked[-1]["metadata"]
    assert (first["deletionGracePeriodSeconds"], last["deletionGracePeriodSeconds"]) == (1, 0)
    assert last["deletionTimestamp"] >= first["deletionTimestamp"]
    assert stage.phase("deleted") == "Failed"
    assert stage.exit("deleted")["exitCode"] == 137
    unmarked = [pod for pod in stage.seen["deleted"] if pod not in marked]
    assert {pod["status"]["phase"] for pod in unmarked} <= {"Pending", "Running"}


def test_a_deletion_is_a_generation_of_its_own_that_the_kubelet_observes(stage: Stage) -> None:
    marked = [pod for pod in stage.seen["deleted"] if "deletionTimestamp" in pod["metadata"]]
    assert {pod["metadata"]["generation"] for pod in marked} == {2}
    assert marked[0]["status"]["observedGeneration"] == 1
    assert marked[-1]["status"]["observedGeneration"] == 2


def test_a_phase_follows_the_end_of_its_container(stage: Stage) -> None:
    for name in ("succeeds", "fails"):
        ended = [
            pod
            for pod in stage.seen[name]
            if any("terminated" in s["state"] for s in pod["status"].get("containerStatuses", ()))
        ]
        assert ended[0]["status"]["phase"] == "Running"
        assert stage.phase(name) in ENDED


def test_conditions_say_which_generation_they_are_about(stage: Stage) -> None:
    conditions = stage.seen["succeeds"][-1]["status"]["conditions"]
    assert {c["type"] for c in conditions} == {
        "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled",
    }  # fmt: skip
    assert {c["observedGeneration"] for c in conditions} == {1}


def test_what_started_has_a_start_time_and_an_address(stage: Stage) -> None:
    status = stage.seen["fails"][-1]["status"]
    assert status["startTime"]
    assert status["podIP"]
    assert status["hostIP"]


def test_a_log_can_be_read_after_the_end(stage: Stage) -> None:
    eventually(lambda: stage.client.get(f"{stage.root}/pods/succeeds/log").code == 200)


def test_the_log_of_a_waiting_container_is_a_bad_request(stage: Stage) -> None:
    got = stage.client.get(f"{stage.root}/pods/badname/log")
    assert got.code == 400
    assert got.message.startswith('container "main" in pod "badname" is waiting to start: ')


def test_the_node_is_ready_and_names_its_version(stage: Stage) -> None:
    (node,) = stage.client.get("/api/v1/nodes").body["items"]
    ready = next(c for c in node["status"]["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "True"
    assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
