"""The node: the same pods on the simulated and on a real one go through the same states."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest

from tests.cluster.images import Images
from tests.contract.stage import ENDED, SIZE, Stage, played, simulated
from tests.support.client import TABLE, Client, Obj, eventually


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
    Images.of(cluster)
    client = Client.from_kubeconfig(cluster.kubeconfig)
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    root = f"/api/v1/namespaces/{name}"
    eventually(lambda: client.get(f"{root}/serviceaccounts/default").code == 200)
    try:
        yield played(Stage(client, root, cluster.open_registry.host, cluster.private_registry.host))
    finally:
        client.delete(f"{root}/pods", {"gracePeriodSeconds": 0})
        client.delete(root)


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
    known = "rpc error: code = NotFound desc = " if name == "missing" else ""
    assert cause[1].startswith(f'{known}failed to pull and unpack image "')
    assert back_off[1].startswith('Back-off pulling image "')
    assert stage.phase(name) == "Pending"


@pytest.mark.since(1, 36)
@pytest.mark.parametrize("name", ["missing", "down", "nohost", "private"])
def test_the_back_off_tells_the_cause_again(stage: Stage, name: str) -> None:
    (_, cause), (_, back_off) = stage.waited(name)[1:3]
    assert back_off.endswith(f'": ErrImagePull: {cause}')


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
            'Failed to apply default image tag "Bad//Name::": couldn\'t parse image name '
            '"Bad//Name::": invalid reference format: repository name (/Name) must be lowercase'
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


@pytest.mark.since(1, 36)
def test_the_kubelets_last_delete_has_no_grace_and_a_time_of_its_own(stage: Stage) -> None:
    marked = [pod for pod in stage.seen["deleted"] if "deletionTimestamp" in pod["metadata"]]
    first, last = marked[0]["metadata"], marked[-1]["metadata"]
    assert (first["deletionGracePeriodSeconds"], last["deletionGracePeriodSeconds"]) == (1, 0)
    assert last["deletionTimestamp"] >= first["deletionTimestamp"]
    assert stage.phase("deleted") == "Failed"
    assert stage.exit("deleted")["exitCode"] == 137
    unmarked = [pod for pod in stage.seen["deleted"] if pod not in marked]
    assert {pod["status"]["phase"] for pod in unmarked} <= {"Pending", "Running"}


@pytest.mark.since(1, 34)
def test_a_deletion_is_a_generation_of_its_own_that_the_kubelet_observes(stage: Stage) -> None:
    marked = [pod for pod in stage.seen["deleted"] if "deletionTimestamp" in pod["metadata"]]
    assert {pod["metadata"]["generation"] for pod in marked} == {2}
    assert marked[0]["status"]["observedGeneration"] == 1
    assert marked[-1]["status"]["observedGeneration"] == 2


@pytest.mark.since(1, 36)
def test_a_phase_follows_the_end_of_its_container(stage: Stage) -> None:
    for name in ("succeeds", "fails"):
        ended = [
            pod
            for pod in stage.seen[name]
            if any("terminated" in s["state"] for s in pod["status"].get("containerStatuses", ()))
        ]
        # A kubelet that is busy tells both in one.
        over = [pod["status"]["phase"] in ENDED for pod in ended]
        assert over == sorted(over)
        assert stage.phase(name) in ENDED


@pytest.mark.since(1, 34)
def test_conditions_say_which_generation_they_are_about(stage: Stage) -> None:
    conditions = stage.seen["succeeds"][-1]["status"]["conditions"]
    assert {c["type"] for c in conditions} == {
        "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled",
    }  # fmt: skip
    assert {c["observedGeneration"] for c in conditions} == {1}


def conditions(pod: Obj) -> dict[str, tuple[str, str]]:
    found = pod["status"].get("conditions", ())
    return {c["type"]: (c["status"], c.get("reason", "")) for c in found}


@pytest.mark.since(1, 36)
def test_a_pod_is_set_up_before_its_containers_start(stage: Stage) -> None:
    steps: list[tuple[str, str, str]] = []
    for pod in stage.seen["deleted"]:
        statuses = pod["status"].get("containerStatuses") or [{"state": {"none": {}}}]
        set_up, _ = conditions(pod).get("PodReadyToStartContainers", ("", ""))
        step = (str(pod["status"]["phase"]), next(iter(statuses[0]["state"])), set_up)
        if step not in steps:
            steps.append(step)
    known = [
        ("Pending", "none", ""),
        ("Pending", "waiting", "False"),
        ("Pending", "waiting", "True"),
        ("Running", "running", "True"),
    ]
    # A kubelet that is busy reports two of the steps in one.
    seen = steps[: steps.index(known[-1]) + 1]
    assert seen == [step for step in known if step in seen]
    assert (seen[0], len(seen) >= len(known) - 1) == (known[0], True)


def test_who_waits_for_whom_stands_in_the_conditions(stage: Stage) -> None:
    pod = stage.seen["unprepared"][-1]
    assert conditions(pod) == {
        "PodReadyToStartContainers": ("True", ""),
        "Initialized": ("False", "ContainersNotInitialized"),
        "Ready": ("False", "ContainersNotReady"),
        "ContainersReady": ("False", "ContainersNotReady"),
        "PodScheduled": ("True", ""),
    }
    told = {c["type"]: c.get("message") for c in pod["status"]["conditions"]}
    assert told["Initialized"] == "containers with incomplete status: [first]"
    assert told["Ready"] == "containers with unready status: [main]"


def test_the_conditions_of_a_pod_that_has_ended(stage: Stage) -> None:
    for name, initialized, done in (
        ("prepared", "PodCompleted", "PodCompleted"),
        ("fails", "", "PodFailed"),
    ):
        assert conditions(stage.seen[name][-1]) == {
            "PodReadyToStartContainers": ("False", ""),
            "Initialized": ("True", initialized),
            "Ready": ("False", done),
            "ContainersReady": ("False", done),
            "PodScheduled": ("True", ""),
        }


@pytest.mark.since(1, 36)
def test_a_container_tells_what_it_was_given(stage: Stage) -> None:
    pod = stage.seen["sized"][-1]
    (status,) = pod["status"]["containerStatuses"]
    assert status["resources"] == SIZE
    assert status["allocatedResources"] == SIZE["requests"]
    assert status["user"] == {"linux": {"uid": 0, "gid": 0, "supplementalGroups": [0]}}
    assert status["started"] is False
    (mount,) = pod["spec"]["containers"][0]["volumeMounts"]
    assert status["volumeMounts"] == [{**mount, "recursiveReadOnly": "Disabled"}]
    assert pod["status"]["qosClass"] == "Burstable"


def test_a_restart_counts_only_when_it_has_come(stage: Stage) -> None:
    steps = []
    for pod in stage.seen["restarts"]:
        for status in pod["status"].get("containerStatuses", ()):
            (state,) = status["state"]
            step = (state, status["restartCount"], "terminated" in status["lastState"])
            if step not in steps:
                steps.append(step)
    # A kubelet that is busy tells an end and what comes after it in one.
    counts = [count for _, count, _ in steps]
    assert counts == sorted(counts)
    assert all(ended_before == (count > 0) for _, count, ended_before in steps)
    assert ("waiting", 1, True) in steps


def events_of(stage: Stage, name: str) -> list[Obj]:
    query = {"fieldSelector": f"involvedObject.name={name}"}
    found: list[Obj] = stage.client.get(f"{stage.root}/events", **query).body["items"]
    return sorted(found, key=lambda event: str(event["metadata"]["resourceVersion"]))


def test_the_events_of_a_pods_life(stage: Stage) -> None:
    eventually(lambda: "Started" in [event["reason"] for event in events_of(stage, "succeeds")])
    found = {event["reason"]: event for event in events_of(stage, "succeeds")}
    assert {"Scheduled", "Pulled", "Created", "Started"} <= set(found)
    bound, started = found["Scheduled"], found["Started"]
    assert bound["message"].startswith(
        f"Successfully assigned {bound['metadata']['namespace']}/succeeds to "
    )
    assert (bound["reportingComponent"], bound["action"]) == ("default-scheduler", "Binding")
    assert (bound["source"], bound["firstTimestamp"], "count" in bound) == ({}, None, False)
    assert bound["eventTime"]
    assert started["involvedObject"]["fieldPath"] == "spec.containers{main}"
    assert (started["source"]["component"], started["count"]) == ("kubelet", 1)
    assert (started["reportingComponent"], started["eventTime"]) == ("kubelet", None)


@pytest.mark.since(1, 36)
def test_the_words_of_a_pods_events(stage: Stage) -> None:
    eventually(lambda: "Started" in [event["reason"] for event in events_of(stage, "succeeds")])
    told = {event["reason"]: event["message"] for event in events_of(stage, "succeeds")}
    assert (told["Created"], told["Started"]) == ("Container created", "Container started")
    late = {event["reason"]: event["message"] for event in events_of(stage, "late")}
    assert late["DeadlineExceeded"] == (
        "Pod was active on the node longer than the specified deadline"
    )
    assert late["Killing"] == "Stopping container main"


def test_the_events_of_a_failing_pull(stage: Stage) -> None:
    image = f"{stage.host}/absent:1"
    cause = stage.waited("missing")[1][1]
    wanted = {
        ("Normal", "Pulling", f'Pulling image "{image}"'),
        ("Warning", "Failed", f'Failed to pull image "{image}": {cause}'),
        ("Warning", "Failed", "Error: ErrImagePull"),
        ("Normal", "BackOff", f'Back-off pulling image "{image}"'),
        ("Warning", "Failed", "Error: ImagePullBackOff"),
    }

    def told() -> set[tuple[str, str, str]]:
        found = events_of(stage, "missing")
        return {(event["type"], event["reason"], event["message"]) for event in found}

    eventually(lambda: wanted <= told())


@pytest.mark.parametrize(
    ("name", "ready", "state", "restarts"),
    [
        ("succeeds", "0/1", "Completed", "0"),
        ("fails", "0/1", "Error", "0"),
        ("late", "0/1", "Error", "0"),
        ("unstartable", "0/1", "StartError", "0"),
        ("prepared", "0/1", "Completed", "0"),
        ("missing", "0/1", "ErrImagePull|ImagePullBackOff", "0"),
        ("noenv", "0/1", "CreateContainerConfigError", "0"),
        ("novolume", "0/1", "ContainerCreating", "0"),
        ("unprepared", "0/1", "Init:(ErrImagePull|ImagePullBackOff)", "0"),
        ("restarts", "[01]/1", "CrashLoopBackOff|Error|Running", r"\d \(\d+s ago\)"),
    ],
)
def test_a_row_of_a_table_tells_how_it_goes(
    stage: Stage, name: str, ready: str, state: str, restarts: str
) -> None:
    query = {"fieldSelector": f"metadata.name={name}"}
    (row,) = stage.client.get(f"{stage.root}/pods", accept=TABLE, **query).body["rows"]
    for cell, pattern in zip(row["cells"][1:4], (ready, state, restarts), strict=True):
        assert re.fullmatch(pattern, cell), row["cells"]


def test_what_started_has_a_start_time_and_an_address(stage: Stage) -> None:
    status = stage.seen["fails"][-1]["status"]
    assert status["startTime"]
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["hostIPs"] == [{"ip": status["hostIP"]}]


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
