"""What becomes of run records: how long they are kept, what they tell, and who may write one."""

import time

from engine.cluster.api import CONFIG_MAPS, METADATA_LIST, list_page
from engine.cluster.connect import connect
from engine.cluster.records import SELECTOR
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.objects import Objects


def test_a_record_goes_once_its_spec_is_gone_and_the_last_pod_too(
    engine: Engine, objects: Objects
) -> None:
    text = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nrecords: {ttl: 1s}\n"
    config = str(engine.write("../engine.yaml", text))
    prune = ("prune", "-n", engine.namespace, "--config", config)
    engine.environment["ENGINE_SOURCE"] = engine.namespace
    engine.spec("lives", script="true")
    engine.spec("gone", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "gone.yaml").unlink()
    engine.reconcile(ends=0)
    time.sleep(2.5)
    kept = engine.run(*prune, "-v", ends=0)
    pod = objects.pod("gone")["metadata"]["name"]
    assert f"pod/{engine.namespace}/{pod} is still there" in kept.stdout
    objects.api.delete("pods", pod, engine.namespace, grace=0)
    objects.api.wait(lambda: len(objects.pods()) == 1, "end of the pod")
    dry_run = engine.run(*prune, "--dry-run", "server", ends=0)
    place = f"configmap/{engine.namespace}/gone.record"
    assert f"would-delete  {place}  its spec is gone since " in dry_run.stdout
    assert f"deleted       {place}  " in engine.run(*prune, ends=0).stdout
    assert objects.api.find("configmaps", "gone.record", engine.namespace) is None
    assert engine.reconcile(ends=0).job("lives")["changed"] is False


def test_a_spec_that_changes_and_changes_back_runs_each_time(
    engine: Engine, objects: Objects
) -> None:
    text = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nrecords: {history: 1}\n"
    config = str(engine.write("../engine.yaml", text))
    for script in ("true", "true a", "true b", "true"):
        engine.spec("job", script=script)
        run = engine.reconcile("--config", config, ends=0)
    assert [attempt["pod"][-2:] for attempt in run.job("job")["attempts"]] == ["-2"]
    assert len(objects.pods()) == 4
    (past,) = engine.status()["job"]["history"]
    assert [attempt["outcome"] for attempt in past["attempts"]] == ["Succeeded"]


def test_a_job_that_has_run_elsewhere_is_recorded_as_done(engine: Engine, objects: Objects) -> None:
    engine.spec("moved", script="true")
    place = ("-n", engine.namespace, "-f", str(engine.folder))
    done = engine.run("complete", "moved", *place, "--reason", "ran elsewhere", ends=0)
    assert done.stdout == f"{engine.namespace}/moved: recorded as Succeeded; nothing was run\n"
    job = engine.reconcile(ends=0).job("moved")
    assert (job["state"], job["changed"]) == ("Succeeded", False)
    assert job["message"].endswith(": ran elsewhere")
    assert objects.pods() == []


def test_the_names_of_an_empty_list_are_none(target: ClusterUnderTest) -> None:
    """Of metadata alone, a server writes its items as null."""
    client = connect(str(target.kubeconfig)).client
    query = [("labelSelector", SELECTOR)]
    path = CONFIG_MAPS.path(target.namespace)
    assert list_page(client, path, query, accept=METADATA_LIST)["items"] == []
