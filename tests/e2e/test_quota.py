"""A quota without room leaves nothing behind, and says which quota it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Quota
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.objects import Objects

FULL: dict[str, Any] = {"script": "true", "secrets": {"TOKEN": {"value": "anything"}}}


@pytest.mark.real
def test_no_room_for_a_pod_leaves_no_secret_and_no_configmap(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"pods": "0"}, name="no-pods")
    engine.spec("waiting", **FULL)
    with (
        objects.api.watch("secrets", objects.namespace) as secrets,
        objects.api.watch("configmaps", objects.namespace) as configmaps,
    ):
        run = engine.reconcile("--timeout", "4s")
        seen = [e.name for e in (*secrets.events, *configmaps.events) if "waiting-" in e.name]
    assert run.code == 5, run.stderr
    assert seen == []
    job = run.job("waiting")
    assert (job["state"], job["reason"]) == ("Queued", "QuotaExceeded")
    assert "exceeded quota: no-pods" in job["message"]
    assert "limited: pods=0" in job["message"]
    assert engine.status()["waiting"]["state"] == "Queued"
    assert objects.pods() == []


def test_a_full_queue_is_given_up_after_the_queue_timeout(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"pods": "0"}, name="no-pods")
    engine.spec("waiting", **FULL)
    run = engine.reconcile("--queue-timeout", "2s", ends=5)
    assert run.job("waiting")["state"] == "Queued"


@pytest.mark.real
def test_no_room_for_a_secret_leaves_no_pod_behind(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"secrets": "0"}, name="no-secrets")
    engine.spec("waiting", **FULL)
    run = engine.reconcile("--timeout", "4s", ends=5)
    job = run.job("waiting")
    assert (job["state"], job["reason"]) == ("Queued", "QuotaExceeded")
    assert "exceeded quota: no-secrets" in job["message"]
    assert objects.pods() == []
    assert objects.owned() == []


@pytest.mark.real
def test_a_queued_job_runs_once_there_is_room(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"pods": "1"}, name="one-pod")
    for name in ("one", "two", "three"):
        engine.spec(name, script="true")
    run = engine.reconcile("--timeout", "90s", ends=0)
    assert {job["state"] for job in run.result["jobs"]} == {"Succeeded"}
    assert [len(job["attempts"]) for job in run.result["jobs"]] == [1, 1, 1]


@pytest.mark.real
def test_the_examples_quotas_count_jobs_apart_from_what_stays(
    engine: Engine, objects: Objects, limit: Quota, target: ClusterUnderTest
) -> None:
    example = Path(__file__).parents[2] / "examples/quotas/quotas.json"
    for quota in json.loads(example.read_text(encoding="utf-8"))["items"]:
        limit(quota["spec"]["hard"], quota["spec"]["scopes"], name=quota["metadata"]["name"])
    requests = {"requests": {"cpu": "100m"}}
    script = target.script("job", lasts=300)
    engine.spec("job", script=script, resources=requests, timeout="10m")
    engine.reconcile("--wait", "applied", ends=0)
    stays = {"name": "stays", "image": engine.image, "command": ["sleep", "300"]}
    pod = {
        "metadata": {"name": "stays"},
        "spec": {"containers": [{**stays, "resources": requests}]},
    }
    objects.api.create("pods", {"apiVersion": "v1", "kind": "Pod", **pod}, objects.namespace)

    def used() -> dict[str, object]:
        quotas = objects.api.list("resourcequotas", objects.namespace)
        return {quota["metadata"]["name"]: quota["status"].get("used") for quota in quotas}

    one = {"pods": "1", "requests.cpu": "100m"}
    objects.api.wait(lambda: used() == {"jobs": one, "services": one}, "the usage of both")


@pytest.mark.real
def test_terminating_and_not_terminating_scopes_count_as_they_should(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    limit({"pods": "0"}, ["NotTerminating"], name="endless")
    engine.spec("short", script="true", timeout="1m")
    engine.reconcile(ends=0)
    config = engine.write(
        "../engine.yaml",
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
        "features: {activeDeadlineSeconds: false}\n",
    )
    engine.spec("endless", script="true", timeout="1m")
    run = engine.reconcile("--config", str(config), "--timeout", "6s", ends=5)
    assert "exceeded quota: endless" in run.job("endless")["message"]
    assert run.job("short")["changed"] is False


def test_inline_secrets_of_one_author_keep_no_job_of_another_from_starting(
    engine: Engine, objects: Objects, limit: Quota
) -> None:
    """Words that every refusal holds, and pieces of what a masked one then looks like."""
    limit({"pods": "0"}, name="full")
    words = ("forbidden", "is ***: exc", "***eeded quota", "full", "exceeded quota: full", "pods")
    secrets = {f"S{number}": {"value": word} for number, word in enumerate(words)}
    engine.spec("evil", script="true", secrets=secrets)
    engine.spec("victim", script="true")
    run = engine.reconcile("--timeout", "6s", ends=5)
    for name in ("victim", "evil"):
        assert (run.job(name)["state"], run.job(name)["reason"]) == ("Queued", "QuotaExceeded")
    assert "forbidden: exceeded quota: full" in run.job("victim")["message"]
    assert "does not settle" not in run.stderr
    objects.api.delete("resourcequotas", "full", objects.namespace)
    run = engine.reconcile("--timeout", "110s", ends=0)
    assert run.job("victim")["state"] == run.job("evil")["state"] == "Succeeded"
