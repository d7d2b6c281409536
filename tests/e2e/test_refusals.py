"""Whatever refuses whichever object: nothing is left of the attempt, and the words are told.

Once it is refused no more the job runs, nobody touching a file: with the engine that stays, or the
next `--once`.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.quota import set_quota
from tests.support.clusters import ClusterUnderTest, RealCluster
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects
from tests.support.refusals import WORDS, right_is_missing, webhook_refuses

EVERYTHING: dict[str, Any] = {"script": "true", "secrets": {"TOKEN": {"value": "anything"}}}
RECORD_ALONE: dict[str, Any] = {"command": ["true"]}
RECORD = "job.record"


@dataclass(frozen=True)
class Full:
    """A quota with room for so many objects beyond those that are there."""

    resource: str
    free: int
    has_record: bool
    """Whether the job's record finds room."""


QUOTAS = (
    Full("pods", 0, has_record=True),
    Full("secrets", 0, has_record=True),
    Full("configmaps", 0, has_record=False),
    Full("configmaps", 1, has_record=True),
)
RIGHTS = (
    ("create", "pods", EVERYTHING),
    ("create", "secrets", EVERYTHING),
    ("create", "configmaps", EVERYTHING),
    ("create", "configmaps", RECORD_ALONE),
    ("patch", "pods", EVERYTHING),
)


def quota_id(full: Full) -> str:
    return f"{full.resource}-{full.free}"


def pair_id(value: object) -> str:
    return value if isinstance(value, str) else "script" if value is EVERYTHING else "command"


def fill(objects: Objects, full: Full) -> None:
    there = len(objects.api.list(full.resource, objects.namespace))
    set_quota(objects.api, objects.namespace, {full.resource: there + full.free}, name="full")


def assert_nothing_left(objects: Objects, *, record: bool) -> None:
    """But the record, if there is to be one: the next try makes it, if the first one could not."""

    def is_recorded() -> bool:
        return objects.api.find("configmaps", RECORD, objects.namespace) is not None

    objects.api.wait(lambda: is_recorded() is record, "record" if record else "end of the record")
    objects.api.wait(lambda: not objects.pods(), "end of the pods")
    objects.wait_until_clean()
    assert is_recorded() is record


@pytest.fixture
def without_right(request: pytest.FixtureRequest, target: ClusterUnderTest, engine: Engine) -> Any:
    """A context manager for a verb and a resource: the engine lacks that right."""
    cluster: Cluster | None = None
    if isinstance(target, RealCluster):
        cluster = request.getfixturevalue("cluster")
    return partial(right_is_missing, target, cluster, engine)


@pytest.fixture
def refusing(target: ClusterUnderTest, tmp_path: Path) -> Any:
    """A context manager for a resource and an ending of names: a webhook denies such writes."""
    return partial(webhook_refuses, target, tmp_path)


# A quota


@pytest.mark.real("pods-0", "configmaps-0")
@pytest.mark.parametrize("full", QUOTAS, ids=quota_id)
def test_a_full_quota_queues_the_job_and_leaves_nothing_but_a_record_that_has_room(
    engine: Engine, objects: Objects, full: Full
) -> None:
    engine.spec("job", **EVERYTHING)
    fill(objects, full)
    run = engine.reconcile("--queue-timeout", "4s", ends=5)
    job = run.job("job")
    assert (job["state"], job["reason"]) == ("Queued", "QuotaExceeded")
    assert f"exceeded quota: full, requested: {full.resource}=1" in job["message"]
    assert "job: Queued QuotaExceeded: " in run.stderr
    assert_nothing_left(objects, record=full.has_record)
    objects.api.delete("resourcequotas", "full", objects.namespace)
    job = engine.reconcile(ends=0).job("job")
    assert (job["state"], len(job["attempts"])) == ("Succeeded", 1)


@pytest.mark.parametrize("full", QUOTAS, ids=quota_id)
def test_the_engine_that_stays_starts_the_job_once_there_is_room(
    engine: Engine, objects: Objects, full: Full
) -> None:
    fill(objects, full)
    with EngineProcess(engine) as staying:
        engine.spec("job", **EVERYTHING)
        staying.wait_for_line("job: Queued QuotaExceeded: ")
        objects.api.wait(
            lambda: staying.metric("engine_quota_waiting_jobs") == 1, "metric of the quota"
        )
        assert_nothing_left(objects, record=full.has_record)
        staying.wait_for_probe("/readyz", 200)
        objects.api.delete("resourcequotas", "full", objects.namespace)
        staying.wait_for_line("job: Succeeded", within=60)
        objects.api.wait(
            lambda: staying.metric("engine_quota_waiting_jobs") == 0, "the end of the waiting"
        )


def test_with_room_for_both_config_maps_the_job_runs_at_once(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", **EVERYTHING)
    fill(objects, Full("configmaps", 2, has_record=True))
    assert engine.reconcile(ends=0).job("job")["state"] == "Succeeded"


def test_without_room_for_a_record_one_pod_is_made_in_vain_and_no_second_one(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("job", **RECORD_ALONE)
    fill(objects, Full("configmaps", 0, has_record=False))
    with objects.api.watch("pods", objects.namespace) as pods:
        engine.reconcile("--queue-timeout", "6s", ends=5)
        made = {event.object["metadata"]["uid"] for event in pods.events}
    assert len(made) == 1
    assert_nothing_left(objects, record=False)
    table = engine.run("reconcile", "--once", str(engine.folder), "--queue-timeout", "2s", ends=5)
    assert "Queued" in table.stdout
    assert "exceeded quota: full" in table.stdout


# A webhook


@pytest.mark.real("pods")
@pytest.mark.parametrize("resource", ["pods", "secrets", "configmaps"])
def test_a_webhook_ends_the_job_in_its_words_and_leaves_the_record_alone(
    engine: Engine, objects: Objects, refusing: Any, resource: str
) -> None:
    """One for ConfigMaps refuses the record as well."""
    engine.spec("job", **EVERYTHING)
    has_record = resource != "configmaps"
    with refusing(resource, ""):
        run = engine.reconcile(ends=5)
        assert WORDS in run.stdout
        assert_nothing_left(objects, record=has_record)
    if has_record:
        assert engine.reconcile(ends=5).job("job")["reason"] == "AdmissionRefused"
        engine.run("rerun", "job", "-n", engine.namespace, ends=0)
    assert engine.reconcile(ends=0).job("job")["state"] == "Succeeded"


@pytest.mark.real
def test_a_webhook_that_refuses_the_record_ends_the_job_and_leaves_nothing(
    engine: Engine, objects: Objects, refusing: Any
) -> None:
    engine.spec("job", **EVERYTHING)
    with refusing("configmaps", ".record"):
        run = engine.reconcile(ends=5)
        assert WORDS in run.job("job")["error"]
        assert WORDS in run.stderr
        assert_nothing_left(objects, record=False)
        table = engine.run("reconcile", "--once", str(engine.folder), ends=5)
        assert WORDS in table.stdout
    assert engine.reconcile(ends=0).job("job")["state"] == "Succeeded"


@pytest.mark.parametrize("ending", ["", ".record"], ids=["every", "record"])
def test_the_engine_that_stays_starts_the_job_once_the_webhook_lets_its_record_pass(
    engine: Engine, objects: Objects, refusing: Any, ending: str
) -> None:
    with EngineProcess(engine) as staying:
        with refusing("configmaps", ending):
            engine.spec("job", **EVERYTHING)
            staying.wait_for_line(WORDS)
            assert_nothing_left(objects, record=False)
            staying.wait_for_probe("/readyz", 200)
        staying.wait_for_line("job: Succeeded", within=90)


@pytest.mark.parametrize("resource", ["pods", "secrets"])
def test_the_engine_that_stays_ends_what_a_webhook_refuses(
    engine: Engine, objects: Objects, refusing: Any, resource: str
) -> None:
    with EngineProcess(engine) as staying:
        with refusing(resource, ""):
            engine.spec("job", **EVERYTHING)
            assert WORDS in staying.wait_for_line("job: Failed AdmissionRefused")
            assert_nothing_left(objects, record=True)
        engine.run("rerun", "job", "-n", engine.namespace, ends=0)
        staying.wait_for_line("job: Succeeded")


# A right


@pytest.mark.parametrize(("verb", "resource", "spec"), RIGHTS, ids=pair_id)
def test_a_missing_right_is_named_and_nothing_is_left(
    engine: Engine,
    objects: Objects,
    without_right: Any,
    verb: str,
    resource: str,
    spec: dict[str, Any],
) -> None:
    engine.spec("job", **spec)
    with without_right(verb, resource):
        run = engine.reconcile(ends=6)
        assert f'cannot {verb} resource "{resource}"' in run.job("job")["error"]
        assert_nothing_left(objects, record=verb == "patch")
    assert engine.reconcile(ends=0).job("job")["state"] == "Succeeded"


@pytest.mark.parametrize(("verb", "resource", "spec"), RIGHTS, ids=pair_id)
def test_the_engine_that_stays_starts_the_job_once_it_has_the_right(
    engine: Engine,
    objects: Objects,
    without_right: Any,
    verb: str,
    resource: str,
    spec: dict[str, Any],
) -> None:
    with ExitStack() as refusal:
        refusal.enter_context(without_right(verb, resource))
        with EngineProcess(engine) as staying:
            engine.spec("job", **spec)
            staying.wait_for_line(f'cannot {verb} resource "{resource}"')
            assert_nothing_left(objects, record=verb == "patch")
            refusal.close()
            staying.wait_for_line("job: Succeeded", within=90)
