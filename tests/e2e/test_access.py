"""A cluster that doesn't let us in, or doesn't have what a spec names."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.cluster.connect import connect
from engine.cluster.kubeconfig import plain_endpoint, read_context
from engine.errors import UnreachableError
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


def _as_data(folder: Path, fields: dict[str, Any]) -> dict[str, Any]:
    del folder
    return {
        f"{key}-data": base64.b64encode(Path(value).read_bytes()).decode()
        for key, value in fields.items()
    }


def _as_relative_paths(folder: Path, fields: dict[str, Any]) -> dict[str, Any]:
    return {key: os.path.relpath(value, folder) for key, value in fields.items()}


@pytest.mark.only("real")
@pytest.mark.parametrize("write", [_as_data, _as_relative_paths])
@pytest.mark.parametrize("more", [{}, {"tls-server-name": "localhost"}], ids=["plain", "library"])
def test_certificates_are_read_from_data_and_from_paths_beside_the_kubeconfig(
    cluster: Cluster, tmp_path: Path, write: Any, more: dict[str, Any]
) -> None:
    given = json.loads(cluster.kubeconfig.read_text(encoding="utf-8"))
    of_cluster, of_user = given["clusters"][0]["cluster"], given["users"][0]["user"]
    server = of_cluster.pop("server")
    given["clusters"][0]["cluster"] = {"server": server, **write(tmp_path, of_cluster), **more}
    given["users"][0]["user"] = write(tmp_path, of_user)
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(given), encoding="utf-8")
    assert (plain_endpoint(read_context(str(path)), 1) is None) == bool(more)
    assert connect(str(path)).client.request("GET", "/version")["major"] == "1"


@pytest.mark.only("real")
def test_a_server_with_another_authority_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    given = json.loads(cluster.kubeconfig.read_text(encoding="utf-8"))
    strange = given["users"][0]["user"]["client-certificate"]
    given["clusters"][0]["cluster"]["certificate-authority"] = strange
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(given), encoding="utf-8")
    with pytest.raises(UnreachableError, match="local issuer certificate"):
        connect(str(path)).client.request("GET", "/version")
