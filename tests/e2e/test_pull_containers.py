"""Pull policies of a pod with several containers: whose they are, who falls back, what is told."""

import json
from typing import Any

import pytest

from engine.sandbox import Run, Sandbox
from tests.support.api import Api
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine, finish

pytestmark = pytest.mark.only("sandbox")

BOTH = ["Always", "IfNotPresent"]
DOWN = "down.example"
TOOL, DATABASE = f"{DOWN}/tool:1", f"{DOWN}/db:1"


@pytest.fixture
def outage(sandbox: Sandbox) -> None:
    """The registry is out of reach; the node has what was pulled from it before."""
    sandbox.images.down(DOWN)
    sandbox.images.cache(TOOL, DATABASE)


def policies(job: dict[str, Any]) -> list[dict[str, str]]:
    return [attempt["pullPolicies"] for attempt in job["attempts"]]


def starts(sandbox: Sandbox, container: str) -> int:
    """How often a container has been started, over all pods."""
    return sum(
        event["reason"] == "Started" and container in event["involvedObject"].get("fieldPath", "")
        for event in sandbox.objects("events", NAMESPACE)
    )


@pytest.mark.usefixtures("outage")
@pytest.mark.parametrize("level", ["job", "folder", "operator"])
def test_one_pull_policy_brings_every_container_through_an_outage(
    engine: Engine, level: str
) -> None:
    wanted: dict[str, Any] = {"pullPolicy": BOTH}
    head = "apiVersion: jobs.engine/v1alpha1\n"
    if level == "folder":
        engine.write("defaults.yaml", f"{head}kind: JobDefaults\nspec: {json.dumps(wanted)}\n")
    engine.write("../engine.yaml", f"{head}kind: EngineConfig\ndefaults: {json.dumps(wanted)}\n")
    engine.spec(
        "job",
        image=TOOL,
        services=[{"name": "db", "image": DATABASE}],
        **(wanted if level == "job" else {}),
    )
    config = ["--config", str(engine.folder / "../engine.yaml")] if level == "operator" else []
    job = engine.reconcile(*config, ends=0).job("job")
    assert policies(job)[-1] == {"db": "IfNotPresent", "main": "IfNotPresent"}


@pytest.mark.usefixtures("outage")
def test_an_init_script_of_the_jobs_own_image_runs_once(engine: Engine, sandbox: Sandbox) -> None:
    init = {"name": "prepare", "image": TOOL, "script": "true"}
    engine.spec("job", image=TOOL, pullPolicy=BOTH, initContainers=[init], script="true")
    run = engine.reconcile(ends=0)
    assert policies(run.job("job")) == [
        {"prepare": "Always", "main": "Always"},
        {"prepare": "IfNotPresent", "main": "IfNotPresent"},
    ]
    assert starts(sandbox, "{prepare}") == starts(sandbox, "{main}") == 1
    told = [line for line in run.lines if "pull policy Always failed" in line]
    assert [line.partition(": pull ")[0].rpartition(" ")[2] for line in told] == ["prepare", "main"]
    assert "connection refused" in told[0]
    assert told[1].endswith("next is IfNotPresent: as for container prepare")


@pytest.mark.usefixtures("outage")
def test_a_service_of_another_image_keeps_its_own_way(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.node.will(Run(duration=60), container="db")
    service = {"name": "db", "image": "up.example/db:1"}
    engine.spec("job", image=TOOL, pullPolicy=BOTH, services=[service])
    job = engine.reconcile(ends=0).job("job")
    assert policies(job) == [
        {"db": "Always", "main": "Always"},
        {"db": "Always", "main": "IfNotPresent"},
    ]


def test_a_failed_pull_names_container_and_image_wherever_it_is_told(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.down(DOWN, "timeout")
    engine.spec("job", image=TOOL, pullPolicy=["Always", "Never"])
    run = engine.reconcile("--log-format", "json", ends=4)
    (line,) = [
        entry for entry in map(json.loads, run.lines) if entry["event"] == "PullPolicyFallback"
    ]
    assert (line["container"], line["image"]) == ("main", TOOL)
    assert "attempt 1, main: pull policy Always failed" in line["message"]
    for job in (run.job("job"), engine.status()["job"]):
        (first,), (second,) = (attempt["failures"] for attempt in job["attempts"])
        assert (first["container"], first["image"], first["class"]) == ("main", TOOL, "transient")
        assert (second["container"], second["image"]) == ("main", TOOL)
    (event,) = [
        event["message"]
        for event in sandbox.objects("events", NAMESPACE)
        if event["reason"] == "PullPolicyFallback"
    ]
    assert event.startswith("main: pull policy Always failed, next is Never: ")
    assert TOOL in event


def test_a_script_never_runs_twice_because_its_service_did(
    engine: Engine, sandbox: Sandbox
) -> None:
    """The service ends, is started again, and finds no registry, while main runs."""
    service = {"name": "db", "image": DATABASE, "pullPolicy": BOTH}
    sandbox.node.will(Run(duration=9), container="db")
    sandbox.node.will(Run(duration=30), container="main")
    engine.spec("job", services=[service], script="sleep 30")
    process = engine.start()
    Api.from_kubeconfig(engine.kubeconfig).wait(lambda: starts(sandbox, "{main}"), "main to start")
    sandbox.images.down(DOWN)
    run = finish(process, ends=0)
    assert (starts(sandbox, "{main}"), len(run.job("job")["attempts"])) == (1, 1)
    told = [line for line in run.lines if "container db can't be started again" in line]
    assert len(told) == 1
    assert "connection refused" in told[0]


def test_an_attempt_after_a_failed_pull_goes_where_its_image_is(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.add_node("second").images.cache(TOOL)
    sandbox.images.down(DOWN)
    own = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    term = "preferredDuringSchedulingIgnoredDuringExecution"
    patch = {"spec": {"affinity": {"nodeAffinity": {term: [own]}}}}
    for name in ("one", "two", "three"):
        engine.spec(name, image=TOOL, pullPolicy=BOTH, podPatch=patch)
    run = engine.reconcile(ends=0)
    pods = {pod["metadata"]["name"]: pod["spec"] for pod in sandbox.objects("pods", NAMESPACE)}
    for name in ("one", "two", "three"):
        pod = pods[run.job(name)["attempts"][-1]["pod"]]
        assert pod["nodeName"] == "second"
        assert pod["affinity"]["nodeAffinity"][term][0] == own
    assert len(sandbox.requests.where("list", "nodes")) == 1


def test_no_node_is_asked_for_as_long_as_images_can_be_pulled(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.down(DOWN)
    sandbox.images.missing("up.example/absent:1")
    sandbox.images.cache(TOOL)
    engine.spec("plain", image="up.example/tool:1", pullPolicy="IfNotPresent")
    engine.spec("cached", image=TOOL, pullPolicy="IfNotPresent")
    engine.spec("absent", image="up.example/absent:1", pullPolicy="Always")
    engine.reconcile(ends=4)
    assert sandbox.requests.where("list", "nodes") == []


def test_without_the_right_to_list_nodes_a_job_falls_back_all_the_same(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.down(DOWN)
    sandbox.images.cache(TOOL)
    sandbox.deny("list", "nodes")
    engine.spec("job", image=TOOL, pullPolicy=BOTH)
    engine.spec("another", image=TOOL, pullPolicy=BOTH)
    assert "nodes is forbidden" not in engine.reconcile(ends=0).stderr
    assert all("affinity" not in pod["spec"] for pod in sandbox.objects("pods", NAMESPACE))


@pytest.mark.parametrize("policy", ["Never", BOTH])
def test_a_rotated_password_in_an_outage_fails_with_the_cause_and_what_helps(
    engine: Engine, sandbox: Sandbox, policy: Any
) -> None:
    sandbox.images.registry(DOWN, users={"ci": "right"})
    login = {"registry": DOWN, "username": "ci", "password": {"value": "right"}}
    engine.spec("first", image=TOOL, registryCredentials=[login], pullPolicy="Always")
    engine.reconcile(ends=0)
    sandbox.images.down(DOWN)
    rotated = {**login, "password": {"value": "tomorrow"}}
    engine.spec("second", image=TOOL, registryCredentials=[rotated], pullPolicy=policy)
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config = engine.write("../engine.yaml", f"{head}pull: {{patience: 3s}}\n")
    message = engine.reconcile("--config", str(config), ends=4).job("second")["message"]
    assert "; node sandbox-node has the image, but since Kubernetes 1.35" in message
    assert "Use a Secret that stays" in message
