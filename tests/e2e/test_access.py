"""A cluster that doesn't let us in, or doesn't have what a spec names."""

import pytest

from tests.cluster.cluster import Cluster
from tests.support.engine import Engine
from tests.support.objects import Objects


@pytest.mark.only("real")
def test_without_permission_the_missing_right_is_named(
    engine: Engine, objects: Objects, cluster: Cluster
) -> None:
    engine.spec("job", script="true")
    engine.kubeconfig = cluster.kubeconfig_for("limited-user")
    run = engine.reconcile(ends=6)
    assert 'User "limited-user" cannot list resource "configmaps"' in run.stderr
    assert "Traceback" not in run.stderr
    assert objects.pods() == []


def test_a_missing_namespace_is_told_at_the_spec_and_nothing_is_applied(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("here", script="true")
    engine.namespace = "no-such-namespace"
    engine.spec("there", script="true")
    run = engine.reconcile(ends=2)
    assert f"{engine.folder}/there.yaml:1:1: " in run.stderr
    assert "no-such-namespace" in run.stderr
    assert objects.pods() == []


def test_one_broken_spec_keeps_the_whole_set_from_being_applied(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("good", script="true")
    engine.spec("broken", script="true", timeout=0)
    run = engine.reconcile(ends=2)
    assert "broken.yaml:1:" in run.stderr
    assert objects.pods() == []


def test_a_secret_that_is_not_set_keeps_the_whole_set_from_being_applied(
    engine: Engine, objects: Objects
) -> None:
    engine.spec("good", script="true")
    engine.spec("unset", script="true", secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_GONE"}})
    run = engine.reconcile(ends=2)
    assert "the variable ENGINE_SECRET_GONE is not set" in run.stderr
    assert objects.pods() == []
    assert objects.api.list("configmaps", objects.namespace, labels="jobs.engine/job") == []


@pytest.mark.only("real")
def test_a_refused_manifest_is_told_in_the_servers_words(engine: Engine, objects: Objects) -> None:
    engine.spec("refused", script="true", podPatch={"spec": {"priorityClassName": "no-such-class"}})
    run = engine.reconcile(ends=5)
    job = run.job("refused")
    assert (job["state"], job["reason"]) == ("Failed", "AdmissionRefused")
    assert "no PriorityClass with name no-such-class" in job["message"]
    assert objects.pods() == []
    assert objects.owned() == []
