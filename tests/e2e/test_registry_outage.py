"""A registry that is away for a while: the job, and a plain pod beside it."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from engine.sandbox import Run, Sandbox
from tests.cluster.images import Images
from tests.cluster.registry import Registry
from tests.support.api import Api
from tests.support.engine import CommandResult, Engine, finish
from tests.support.engine_process import wait_for_state
from tests.support.objects import Objects

REAL = [pytest.mark.only("real"), pytest.mark.alone, pytest.mark.timeout(400)]
FOREVER = 0
PATIENCE = "20s"
"""For a registry that never comes back: the test waits for it."""


def real(function: Callable[..., None]) -> Callable[..., None]:
    for mark in REAL:
        function = mark(function)
    return function


def patient(engine: Engine, patience: str) -> tuple[str, str]:
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    config = engine.write("../engine.yaml", f"{head}pull: {{patience: {patience}}}\n")
    return "--config", str(config)


def plain_pod(api: Api, namespace: str, image: str) -> None:
    """As `kubectl run --restart=Never --image-pull-policy=Always` makes one."""
    main = {"name": "main", "image": image, "imagePullPolicy": "Always", "command": ["true"]}
    spec = {"restartPolicy": "Never", "containers": [main]}
    api.create("pods", {"metadata": {"name": "plain"}, "spec": spec}, namespace)


def phase(api: Api, namespace: str) -> str:
    return str(api.get("pods", "plain", namespace)["status"].get("phase"))


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")


class Outage:
    """A registry that is stopped now, and comes back after some seconds; 0 is never."""

    def __init__(self, registry: Registry, seconds: float) -> None:
        registry.stop()
        self._timer = threading.Timer(seconds, registry.start)
        self._began = time.monotonic()
        if seconds:
            self._timer.start()

    def took(self, what: str) -> None:
        say(f"{what}: {time.monotonic() - self._began:.1f}s after the registry went")

    def over(self) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()


@real
@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.soak), FOREVER])
def test_a_registry_that_is_away_costs_a_job_no_more_than_a_plain_pod(
    engine: Engine, objects: Objects, images: Images, registry: Registry, seconds: float
) -> None:
    """With its image on the node a job doesn't wait; without it, it waits as the pod does."""
    api, there, missing = objects.api, images.build(), images.build()
    images.pull_to_node(there)
    images.drop_from_node(missing)
    for name, ref in (("there", there), ("missing", missing)):
        engine.spec(name, image=ref, pullPolicy=["Always", "IfNotPresent"], script="echo ran")
    config = patient(engine, PATIENCE if seconds == FOREVER else "2m")
    outage = Outage(registry, seconds)
    try:
        plain_pod(api, objects.namespace, missing)
        process = engine.start(*config)
        wait_for_state(engine, "there", "Succeeded")
        outage.took("the job whose image is on the node had ended")
        run = finish(process, timeout=300)
        outage.took(f"both jobs had ended, exit code {run.code}")
        if seconds:
            api.wait(
                lambda: phase(api, objects.namespace) == "Succeeded", "the plain pod", timeout=240
            )
            outage.took("the plain pod had ended")
        else:
            say(f"the plain pod is {phase(api, objects.namespace)}")
    finally:
        outage.over()
    for name in ("there", "missing"):
        for one in run.job(name)["attempts"]:
            say(f"{name}, {one['pullPolicies']}: {one['outcome']} {one['message']}")
    job = run.job("missing")
    for one in (run.job("there"), *((job,) if seconds else ())):
        outcomes = [attempt["outcome"] for attempt in one["attempts"]]
        # A node that takes its time may ask for the first time once the registry is back.
        assert (one["state"], outcomes[-1]) == ("Succeeded", "Succeeded")
        assert set(outcomes[:-1]) <= {"ImagePullFailed"}
    if seconds:
        assert run.code == 0
        return
    assert (run.code, job["reason"]) == (4, "ImagePullFailed")
    assert "connection refused" in job["message"]
    assert waits(run)
    assert f"gives up in {PATIENCE}" in waits(run)[0] or "gives up in 19s" in waits(run)[0]
    assert phase(api, objects.namespace) == "Pending"


def waits(run: CommandResult) -> list[str]:
    return [line for line in run.lines if "waits for the registry: " in line]


@pytest.mark.only("sandbox")
@pytest.mark.parametrize("policy", ["Always", ["Always", "IfNotPresent"], ["Always", "Always"]])
def test_a_registry_that_is_away_for_seconds_never_fails_a_job(
    engine: Engine, sandbox: Sandbox, policy: Any
) -> None:
    ref = "blip.example/tool:1"
    sandbox.images.down("blip.example")
    engine.spec("job", image=ref, pullPolicy=policy, script="true")
    back = threading.Timer(6, sandbox.images.up, ["blip.example"])
    back.start()
    run = engine.reconcile(ends=0)
    back.join()
    assert run.job("job")["attempts"][-1]["outcome"] == "Succeeded"


@pytest.mark.only("sandbox")
def test_a_job_that_waits_for_its_registry_says_so_in_every_view(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.images.down("gone.example")
    engine.spec("job", image="gone.example/tool:1", script="true")
    engine.reconcile("--timeout", "4s", ends=3)
    words = "waits for the registry: failed to pull"
    assert engine.status()["job"]["message"].startswith(words)
    for command in (
        ["status", "-n", engine.namespace],
        ["describe", "job", "-n", engine.namespace],
    ):
        said = engine.run(*command, ends=0).stdout
        assert words in said
        assert "connection refused; gives up in 1m" in said


@pytest.mark.only("sandbox")
def test_a_retry_says_which_attempt_failed_of_how_many_and_when_the_next_one_comes(
    engine: Engine, sandbox: Sandbox
) -> None:
    """`max` alone retries."""
    sandbox.node.will(Run(exit_code=1), pod="flaky-*")
    engine.spec("flaky", retry={"max": 1}, script="exit 1")
    run = engine.reconcile(ends=1)
    (line,) = [line for line in run.lines if "attempt 1 of 2 failed" in line]
    assert "flaky: Starting: attempt 1 of 2 failed: exit code 1; next in" in line
    assert [a["outcome"] for a in run.job("flaky")["attempts"]] == ["ScriptFailed"] * 2


@pytest.mark.only("sandbox")
def test_an_attempt_has_the_same_number_in_lines_tables_json_and_junit_after_a_rerun(
    engine: Engine, sandbox: Sandbox
) -> None:
    """The pod's name alone goes on counting over the runs of one spec."""
    engine.spec("job", script="true")
    engine.reconcile(ends=0)
    engine.run("rerun", "job", "-n", engine.namespace, "-f", str(engine.folder), ends=0)
    report = engine.folder.parent / "junit.xml"
    run = engine.reconcile("--junit", str(report), ends=0)
    assert not [line for line in run.lines if "attempt 2" in line]
    (attempt,) = run.job("job")["attempts"]
    assert (attempt["number"], attempt["pod"][-2:]) == (1, "-2")
    text = report.read_text(encoding="utf-8")
    assert 'name="job"' in text
    assert "attempt 2" not in text
    said = engine.run("describe", "job", "-n", engine.namespace, ends=0).stdout
    assert f"  1  Succeeded, exit code 0: pod {attempt['pod']}" in said
    assert len(sandbox.objects("pods", engine.namespace)) == 2
