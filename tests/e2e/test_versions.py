"""What one version of the engine began the other brings to its end: 0.1 and this one, both ways."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from engine.cluster.records import KEY
from engine.sandbox import Fault, Sandbox, ServerError
from tests.e2e.conftest import Quota
from tests.support.api import Api, Object
from tests.support.clusters import ClusterUnderTest, SandboxCluster
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects
from tests.support.old_engine import old
from tests.support.recorder import Recorder

pytestmark = pytest.mark.timeout(900)
"""An environment for 0.1 is made once."""

SECRET = {"TOKEN": {"value": "some-value"}}
LEADS = "engine_leader"
RECORD = "jobs.engine/component=record"


@pytest.fixture(params=["upgrade", "rollback"])
def versions(request: pytest.FixtureRequest, engine: Engine) -> tuple[Engine, Engine]:
    """Who begins, and who goes on."""
    before = old(engine)
    return (before, engine) if request.param == "upgrade" else (engine, before)


@pytest.fixture
def uncached(target: ClusterUnderTest, request: pytest.FixtureRequest) -> str:
    """An image that is in its registry and on no node."""
    if isinstance(target, SandboxCluster):
        return "registry.example/uncached:1"
    image: str = request.getfixturevalue("images").build()
    return image


@contextmanager
def switch(api: Api, name: str) -> Iterator[Object]:
    """A label that no node has before `turn_on`."""
    yield {"nodeSelector": {f"switch-{name}": "on"}}
    for node in api.list("nodes"):
        labels = {"metadata": {"labels": {f"switch-{name}": None}}}
        api.patch("nodes", node["metadata"]["name"], labels)


def turn_on(api: Api, name: str) -> None:
    for node in api.list("nodes"):
        labels = {"metadata": {"labels": {f"switch-{name}": "on"}}}
        api.patch("nodes", node["metadata"]["name"], labels)


def started(events: Recorder) -> Counter[str]:
    """How many pods of each job were let go, whatever became of them."""
    seen = {
        (event.object["metadata"]["labels"]["jobs.engine/job"], event.object["metadata"]["uid"])
        for event in events.events
        if not event.object["spec"].get("schedulingGates")
    }
    return Counter(job for job, _ in seen)


def test_jobs_in_their_middle_end_under_the_other_version_and_run_once(
    versions: tuple[Engine, Engine],
    target: ClusterUnderTest,
    objects: Objects,
    limit: Quota,
    uncached: str,
) -> None:
    """One runs, one waits for a node, one for its fallback, two for a quota, one is over.

    The engine is killed as soon as one of the two has a pod: it is gated still, or was.
    """
    first, second = versions
    api, namespace = objects.api, objects.namespace
    limit({"pods": "4"})
    with switch(api, namespace) as nowhere, api.watch("pods", namespace) as events:
        first.spec("runs", script=target.script("runs", lasts=20), secrets=SECRET)
        first.spec("unscheduled", script=target.script("unscheduled"), **nowhere)
        first.spec(
            "falls", image=uncached, pullPolicy=["Never", "IfNotPresent"], **nowhere,
            script=target.script("falls"),
        )  # fmt: skip
        over = {"success": "5s", "failure": "5s"}
        first.spec("over", script=target.script("over"), ttlAfterFinished=over)
        with EngineProcess(first, "--prune-interval", "1h", ready=False) as begins:
            wait_for(objects, "over", "Succeeded")
            wait_for(objects, "runs", "Running")
            for job in ("unscheduled", "falls"):
                objects.wait_until_ungated(job)
            set_quota(api, namespace, "3")
            queued = ("waits", "waits-too")
            for job in queued:
                first.spec(job, script=target.script(job), secrets=SECRET)
            for job in queued:
                wait_for(objects, job, "Queued")
            set_quota(api, namespace, "4")
            events.wait_for(lambda event: event.name.startswith("waits-"), "pod of a queued job")
            begins.kill()
        turn_on(api, namespace)
        known = uids(objects)
        with EngineProcess(second, "--prune-interval", "1s", ready=False) as goes_on:
            jobs = ("runs", "unscheduled", "falls", "over", *queued)
            for job in jobs:
                wait_for(objects, job, "Succeeded")
            api.wait(
                lambda: not api.list("pods", namespace, labels="jobs.engine/job=over"),
                "end of the expired pod",
            )
            assert goes_on.stop().code == 0
        expected = Counter(jobs) + Counter(["falls"])
        assert started(events) == expected
        assert_whole(objects, expected)
        after = uids(objects)
        assert {job: after[job][: len(found)] for job, found in known.items()} == known
        assert first.reconcile("--source", namespace, ends=0).job("runs")["state"] == "Succeeded"
        assert started(events) == expected, "who has gone back runs it again"


@pytest.mark.only("sandbox")
def test_a_pod_left_gated_at_any_step_is_taken_over_or_made_anew_and_runs_once(
    versions: tuple[Engine, Engine], sandbox: Sandbox, target: ClusterUnderTest, objects: Objects
) -> None:
    """Before its Secret, before its record, and before its gate goes."""
    first, second = versions
    api, namespace = objects.api, objects.namespace
    away = ServerError(503)
    steps = {
        "unowned": Fault(away, "create", "secrets", name="unowned-*", times=None),
        "unrecorded": Fault(away, "create", "configmaps", name="unrecorded.record", times=None),
        "gated": Fault(away, "patch", "pods", name="gated-*", times=None),
    }
    for job, fault in steps.items():
        sandbox.faults.add(fault)
        first.spec(job, script=target.script(job), secrets=SECRET)
    with api.watch("pods", namespace) as events:
        with EngineProcess(first, ready=False) as begins:
            for fault in steps.values():
                api.wait(partial(sandbox.faults.hits, fault), "step that fails")
            begins.kill()
        assert started(events) == Counter()
        sandbox.faults.clear()
        with EngineProcess(second, ready=False):
            for job in steps:
                wait_for(objects, job, "Succeeded")
        assert started(events) == Counter(steps.keys())
        assert_whole(objects, Counter(steps.keys()))


def test_both_versions_share_the_lease_and_hand_it_over_in_the_middle_of_jobs(
    engine: Engine, target: ClusterUnderTest, objects: Objects
) -> None:
    """As a rolling update does: 0.1 leads, this version stands by, and later the other way."""
    before = old(engine)
    jobs = Counter[str]()
    with objects.api.watch("pods", objects.namespace) as events, ExitStack() as stack:
        leader = stack.enter_context(EngineProcess(before, "--leader-elect"))
        leader.wait_for_line("leading")
        for version in (engine, before):
            standby = stack.enter_context(EngineProcess(version, "--leader-elect"))
            assert (leader.metric(LEADS), standby.metric(LEADS)) == (1, 0)
            batch = [f"job-{len(jobs) + number}" for number in range(4)]
            jobs.update(batch)
            for job in batch:
                script = target.script(job, lasts=10)
                engine.spec(job, script=script, secrets=SECRET)
            wait_for(objects, batch[0], "Running")
            assert leader.stop().code == 0
            standby.wait_for_line("leading")
            for job in jobs:
                wait_for(objects, job, "Succeeded")
            assert started(events) == jobs
            leader = standby
    assert_whole(objects, jobs)


def records(objects: Objects) -> dict[str, Object]:
    """By job, as both versions write them."""
    found = objects.api.list("configmaps", objects.namespace, labels=RECORD)
    return {
        item["metadata"]["labels"]["jobs.engine/job"]: json.loads(item["data"][KEY])
        for item in found
    }


def wait_for(objects: Objects, job: str, state: str, within: float = 120) -> None:
    def told() -> bool:
        return bool(records(objects).get(job, {}).get("state") == state)

    objects.api.wait(told, f"{state} job {job}", within)


def set_quota(api: Api, namespace: str, pods: str) -> None:
    api.patch("resourcequotas", "q", {"spec": {"hard": {"pods": pods}}}, namespace)

    def counted() -> bool:
        status: Object = api.get("resourcequotas", "q", namespace)["status"]
        return bool(status["hard"]["pods"] == pods)

    api.wait(counted, f"quota of {pods} pods")


def uids(objects: Objects) -> dict[str, list[str]]:
    """Of the pods of all attempts."""
    return {
        job: [attempt["uid"] for attempt in record.get("attempts", ())]
        for job, record in records(objects).items()
    }


def assert_whole(objects: Objects, attempts: Counter[str]) -> None:
    """The records tell of each attempt, and no Secret or ConfigMap is left without its pod."""
    told = {job: len(found) for job, found in uids(objects).items()}
    assert told == attempts
    pods = {pod["metadata"]["uid"] for pod in objects.pods()}
    labels = "app.kubernetes.io/managed-by=engine,jobs.engine/component!=record"

    def unowned() -> list[str]:
        return [
            item["metadata"]["name"]
            for kind in ("secrets", "configmaps")
            for item in objects.api.list(kind, objects.namespace, labels=labels)
            if {owner["uid"] for owner in item["metadata"]["ownerReferences"]}.isdisjoint(pods)
        ]

    objects.api.wait(lambda: not unowned(), "end of what no pod owns")
