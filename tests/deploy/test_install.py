"""The chart on a real cluster by the real helm, and the kustomization: the image's pods at work."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cluster.cluster import Cluster
from tests.cluster.helm import CHART, Helm
from tests.cluster.images import Images
from tests.deploy.manifests import DEPLOY
from tests.support.api import Api
from tests.support.engine import Engine

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(600)]

TTL = "cleaner.kubernetes.gitlab.org/ttl"
SECURITY: dict[str, Any] = {
    "podSecurityContext": {"runAsNonRoot": True, "runAsUser": 65532},
    "securityContext": {"capabilities": {"drop": ["ALL"]}},
}


class Release:
    """One release of the chart, with its values so far."""

    def __init__(self, helm: Helm, cluster: Cluster, folder: Path, namespace: str) -> None:
        self._helm = helm
        self._kubeconfig = cluster.kubeconfig
        self._folder = folder
        self.namespace = namespace

    def helm(self, verb: str, values: dict[str, Any] | None = None) -> None:
        arguments = [verb, "ci", f"--namespace={self.namespace}", "--timeout=5m"]
        if values is not None:
            file = self._folder / "values.yaml"
            file.write_text(json.dumps(values))
            arguments[2:2] = [str(CHART), f"--values={file}"]
        done = self._helm.run(*arguments, "--wait", kubeconfig=self._kubeconfig)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def release(helm: Helm, cluster: Cluster, tmp_path: Path, restricted: str) -> Release:
    return Release(helm, cluster, tmp_path, restricted)


@pytest.fixture
def engine(cluster: Cluster, tmp_path: Path, images: Images, namespace: str) -> Engine:
    """Somebody's command line, who looks from outside."""
    return Engine(cluster.kubeconfig, namespace, tmp_path, images.busybox)


@pytest.fixture
def jobs(api: Api, namespace: str) -> Iterator[str]:
    """A name for a namespace that the chart will make."""
    name = f"jobs-{namespace[-8:]}"
    yield name
    api.client.call("DELETE", f"/api/v1/namespaces/{name}")


def spec_of(name: str, engine: Engine, script: str = "echo done") -> str:
    """In JSON, which is YAML."""
    spec = {"image": engine.image, "script": script}
    head = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobSpec", "metadata": {"name": name}}
    return json.dumps({**head, "spec": spec})


def engine_values(repository: str, namespace: str, **files: str) -> dict[str, Any]:
    given = {f"{name}.yaml": text for name, text in files.items()}
    return {
        "image": {"repository": repository},
        "namespaces": {"create": [namespace]},
        "engine": {
            "jobs": {"namespaces": [namespace]},
            "specs": {"configMap": {"files": given}},
            "config": {"defaults": SECURITY, "limits": {"podSecurity": "restricted"}},
        },
    }


def attempts(engine: Engine, namespace: str) -> dict[str, tuple[str, int]]:
    """State and number of attempts of every job in the namespace."""
    run = engine.run("status", "-n", namespace, "-o", "json", ends=0)
    return {job["name"]: (job["state"], len(job["attempts"])) for job in run.result["jobs"]}


def test_installed_upgraded_and_uninstalled_it_runs_every_job_once_and_leaves_records(
    release: Release, repository: str, engine: Engine, api: Api, cluster: Cluster, jobs: str
) -> None:
    since = cluster.audit_position()
    values = engine_values(repository, jobs, first=spec_of("first", engine))
    release.helm("install", values)
    done = ("Succeeded", 1)
    api.wait(lambda: attempts(engine, jobs) == {"first": done}, "first job", 180)

    values["engine"]["specs"]["configMap"]["files"]["second.yaml"] = spec_of("second", engine)
    release.helm("upgrade", values)
    both = {"first": done, "second": done}
    api.wait(lambda: attempts(engine, jobs) == both, "second job, and no other run", 180)

    account = f"system:serviceaccount:{release.namespace}:ci-engine"
    asked = [e for e in cluster.audit_entries("engine/", since) if e["user"]["username"] == account]
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


def test_when_the_leaders_pod_is_killed_the_other_goes_on_with_its_jobs(
    release: Release, repository: str, engine: Engine, api: Api, jobs: str
) -> None:
    values = engine_values(repository, jobs, long=spec_of("long", engine, "sleep 20"))
    release.helm("install", values)
    api.wait(lambda: attempts(engine, jobs).get("long", ("",))[0] == "Running", "running job", 180)
    lease = api.get("coordination.k8s.io/v1/leases", "engine-ci", jobs)
    pods = [one["metadata"]["name"] for one in api.list("pods", release.namespace)]
    (leader,) = [name for name in pods if name in lease["spec"]["holderIdentity"]]
    api.delete("pods", leader, release.namespace, grace=0)

    expected = {"long": ("Succeeded", 1)}
    api.wait(lambda: attempts(engine, jobs) == expected, "end of the job, run once", 180)


def expiring(api: Api, namespace: str, image: str, ttl: str) -> None:
    """A pod as another runner makes it, with a Secret and a ConfigMap that it owns."""
    container = {
        "name": "main",
        "image": image,
        "command": ["sleep", "600"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    security = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod = {
        "metadata": {"name": f"runner-{ttl}", "annotations": {TTL: ttl}},
        "spec": {
            "containers": [container],
            "securityContext": security,
            "terminationGracePeriodSeconds": 0,
        },
    }
    made = api.create("pods", pod, namespace)
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"runner-{ttl}", "uid": uid}
    for resource in ("secrets", "configmaps"):
        body = {"metadata": {"name": f"runner-{ttl}", "ownerReferences": [owner]}}
        api.create(resource, body, namespace)


def left(api: Api, namespace: str) -> set[tuple[str, str]]:
    return {
        (resource, one["metadata"]["name"])
        for resource in ("pods", "secrets", "configmaps")
        for one in api.list(resource, namespace)
        if one["metadata"]["name"].startswith("runner-")
    }


@pytest.mark.parametrize("dry", [False, True], ids=["deletes", "dry run"])
def test_the_cleaner_fires_and_takes_what_has_outlived_its_ttl_with_what_it_owns(
    release: Release, repository: str, api: Api, images: Images, dry: bool
) -> None:
    namespace = release.namespace
    for ttl in ("5", "11700"):
        expiring(api, namespace, images.busybox, ttl)
    everything = left(api, namespace)
    cleaner = {"enabled": True, "schedule": "* * * * *", "dryRun": "client" if dry else "none"}
    values = {
        "image": {"repository": repository},
        "engine": {"enabled": False},
        "cleaner": cleaner,
    }
    release.helm("install", values)

    def over() -> bool:
        ended = [
            job.get("status", {}).get("succeeded") for job in api.list("batch/v1/jobs", namespace)
        ]
        return 1 in ended

    api.wait(over, "end of a run of the CronJob", 180)
    young = {entry for entry in everything if entry[1] == "runner-11700"}
    expected = everything if dry else young
    api.wait(lambda: left(api, namespace) == expected, f"{expected} and no more", 60)


def documents_of(
    text: str, namespace: str, jobs: str, repository: str, image: str
) -> list[dict[str, Any]]:
    """The plain YAML with images that there are, in namespaces that nobody else has."""
    text = text.replace("registry.example.com/engine", repository)
    text = text.replace("docker.io/library/busybox:1.36", image)
    for old, new in (("engine", namespace), ("ci", jobs)):
        for before in ("namespace: ", "--namespace=", "- "):
            text = text.replace(f"{before}{old}\n", f"{before}{new}\n")
    found: list[dict[str, Any]] = list(YAML(typ="safe", pure=True).load_all(text))
    for document in found:
        metadata = document["metadata"]
        if document["kind"] == "Namespace":
            metadata["name"] = {"engine": namespace, "ci": jobs}[metadata["name"]]
        if document["kind"].startswith("Cluster"):
            metadata["name"] = f"{namespace}-{metadata['name']}"
        if document["kind"] == "ClusterRoleBinding":
            document["roleRef"]["name"] = metadata["name"]
    return found


def test_the_kustomization_is_taken_and_its_engine_runs_the_example(
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

    text = kubectl("kustomize", str(DEPLOY))
    found = documents_of(text, restricted, jobs, repository, images.busybox)
    file = tmp_path / "all.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in found))
    try:
        kubectl("apply", f"--filename={file}")
        expected = {"hello": ("Succeeded", 1)}
        api.wait(lambda: attempts(engine, jobs) == expected, "the example's job", 180)

        def ready() -> bool:
            status = api.get("apps/v1/deployments", "engine", restricted)["status"]
            return bool(status.get("readyReplicas") == 2)

        api.wait(ready, "two ready replicas")
        assert api.find("batch/v1/cronjobs", "engine-cleaner", jobs) is not None
    finally:
        kubectl("delete", f"--filename={file}", "--wait=false", "--ignore-not-found")
