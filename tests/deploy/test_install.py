"""The chart on a real cluster by the real helm, and the plain YAML: the image's pods at work."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cluster.cluster import Cluster
from tests.cluster.helm import CHART, Helm
from tests.cluster.images import Images
from tests.deploy.manifests import DEPLOY
from tests.deploy.release import Release, attempts, engine_values, spec_of
from tests.support.api import Api
from tests.support.engine import Engine

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(600)]


def test_installed_upgraded_and_uninstalled_it_runs_every_job_once_and_leaves_records(
    release: Release, repository: str, engine: Engine, api: Api, cluster: Cluster, jobs: str
) -> None:
    since = cluster.audit_position()
    values = engine_values(repository, jobs, first=spec_of("first", engine))
    release.helm("install", values)
    done = ("Succeeded", 1)
    api.wait(lambda: attempts(api, jobs) == {"first": done}, "first job", 180)

    values["engine"]["specs"]["configMap"]["files"]["second.yaml"] = spec_of("second", engine)
    release.helm("upgrade", values)
    both = {"first": done, "second": done}
    api.wait(lambda: attempts(api, jobs) == both, "second job, and no other run", 180)
    for place in (release.namespace, jobs):
        labels = api.get("namespaces", place)["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"

    account = f"system:serviceaccount:{release.namespace}:ci-engine"
    entries = cluster.audit_entries("engine/", since)
    asked = [entry for entry in entries if entry["user"].get("username") == account]
    refused = [
        entry["requestURI"] for entry in asked if entry.get("responseStatus", {}).get("code") == 403
    ]
    assert asked
    assert refused == []

    release.helm("uninstall")
    for resource in ("apps/v1/deployments", "configmaps", "serviceaccounts"):
        names = {one["metadata"]["name"] for one in api.list(resource, release.namespace)}
        assert not {name for name in names if name.startswith("ci-")}
    assert api.list("rbac.authorization.k8s.io/v1/roles", jobs) == []
    records = api.list("configmaps", jobs, labels="jobs.engine/component=record")
    assert {one["metadata"]["name"] for one in records} == {"first.record", "second.record"}


def documents_of(
    text: str, namespace: str, jobs: str, repository: str, image: str
) -> list[dict[str, Any]]:
    """The plain YAML with images that there are, in namespaces that nobody else has."""
    text = text.replace("registry.example.com/engine", repository)
    text = text.replace("docker.io/library/busybox:1.36", image)
    for old, new in (("engine", namespace), ("ci", jobs)):
        for before in ("namespace: ", "--namespace=", "--lease-namespace=", "- "):
            text = text.replace(f"{before}{old}\n", f"{before}{new}\n")
    found: list[dict[str, Any]] = list(YAML(typ="safe", pure=True).load_all(text))
    found = [document for document in found if document]
    for document in found:
        metadata = document["metadata"]
        if document["kind"] == "Namespace":
            metadata["name"] = {"engine": namespace, "ci": jobs}[metadata["name"]]
        if document["kind"].startswith("Cluster"):
            metadata["name"] = f"{namespace}-{metadata['name']}"
        if document["kind"] == "ClusterRoleBinding":
            document["roleRef"]["name"] = metadata["name"]
    return found


@pytest.mark.parametrize("by", ["kustomization", pytest.param("apply", marks=pytest.mark.soak)])
def test_the_plain_yaml_is_taken_and_its_engine_runs_the_example(
    by: str,
    repository: str,
    images: Images,
    engine: Engine,
    api: Api,
    cluster: Cluster,
    restricted: str,
    jobs: str,
    tmp_path: Path,
) -> None:
    def kubectl(*arguments: str) -> str:
        argv = [str(cluster.kubectl), f"--kubeconfig={cluster.kubeconfig}", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    files = [DEPLOY / "engine.yaml", DEPLOY / "cleaner.yaml"]
    plain = "\n---\n".join(file.read_text() for file in files)
    text = kubectl("kustomize", str(DEPLOY)) if by == "kustomization" else plain
    found = documents_of(text, restricted, jobs, repository, images.busybox)
    file = tmp_path / "all.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in found))
    try:
        kubectl("apply", f"--filename={file}")
        expected = {"hello": ("Succeeded", 1)}
        api.wait(lambda: attempts(api, jobs) == expected, "the example's job", 180)

        def ready() -> bool:
            status = api.get("apps/v1/deployments", "engine", restricted)["status"]
            return bool(status.get("readyReplicas") == 2)

        api.wait(ready, "two ready replicas")
        assert api.find("batch/v1/cronjobs", "engine-cleaner", jobs) is not None
    finally:
        kubectl("delete", f"--filename={file}", "--wait=false", "--ignore-not-found")


def test_the_notes_do_not_keep_quiet_about_jobs_beside_the_engine(
    helm: Helm, cluster: Cluster
) -> None:
    def notes(places: str) -> str:
        values = f"--set-json=engine.jobs.namespaces={places}"
        given = ("install", "engine", str(CHART), "--namespace=engine", "--dry-run=client", values)
        done = helm.run(*given, kubeconfig=cluster.kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout.rpartition("\nNOTES:\n")[2]

    assert "WARNING: jobs may run in engine, beside the engine's own token" in notes('["engine"]')
    assert "WARNING" not in notes('["ci"]')
