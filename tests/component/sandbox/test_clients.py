"""Real clients against the sandbox: kubectl and the Python client."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.sandbox import FOREVER, Run, Sandbox
from tests.cluster.settings import Settings
from tests.support.client import Client, eventually

Kubectl = Callable[..., str]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: job, labels: {app: demo}}
spec:
  restartPolicy: Never
  containers:
    - {name: main, image: "alpine:3.20", env: [{name: A, value: b}]}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {level: LEVEL}
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        yield sandbox


def found_kubectl() -> str | None:
    """That of the release under the tests, once it has been built; else what is installed."""
    settings = Settings.from_environment()
    built = settings.cache.glob(f"kubernetes-{settings.release}-*/kubectl")
    newest = max(built, key=lambda program: program.stat().st_mtime, default=None)
    return str(newest) if newest else shutil.which("kubectl")


@pytest.fixture
def kubectl(live: Sandbox, tmp_path: Path) -> Kubectl:
    program = found_kubectl()
    if program is None:
        pytest.skip("kubectl is not installed")

    def run(*args: str, given: str | None = None) -> str:
        config = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--cache-dir", str(tmp_path / "c")]
        done = subprocess.run(
            [program, *config, *args],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr

    return run


def test_kubectl_applies_only_what_changed(kubectl: Kubectl) -> None:
    first = CONFIG.replace("LEVEL", "debug")
    assert kubectl("apply", "-f", "-", given=first) == "configmap/settings created\n"
    assert kubectl("apply", "-f", "-", given=first) == "configmap/settings unchanged\n"
    second = CONFIG.replace("LEVEL", "info")
    assert kubectl("apply", "-f", "-", given=second) == "configmap/settings configured\n"
    assert kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.level}") == "info"


def test_kubectl_applies_shows_and_waits_for_a_job_spec(kubectl: Kubectl, live: Sandbox) -> None:
    job = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: build}\n"
    first = f"{job}spec: {{image: 'x:1', pullPolicy: [Always, Never]}}"
    assert kubectl("apply", "-f", "-", given=first) == "jobspec.jobs.engine/build created\n"
    assert kubectl("apply", "-f", "-", given=first) == "jobspec.jobs.engine/build unchanged\n"
    second = f"{job}spec: {{image: 'x:1', pullPolicy: Never}}"
    assert kubectl("apply", "-f", "-", given=second) == "jobspec.jobs.engine/build configured\n"
    refused = kubectl("apply", "-f", "-", given=f"{job}spec: {{image: a, timeout: soon}}")
    assert 'spec.timeout: Invalid value: "soon": use seconds' in refused
    finished = {"type": "Finished", "status": "True", "observedGeneration": 2}
    status = {"state": "Succeeded", "observedGeneration": 2, "conditions": [finished]}
    path = "/apis/jobs.engine/v1alpha1/namespaces/default/jobspecs/build/status"
    Client(live.url).patch(path, {"status": status})
    assert "condition met" in kubectl("wait", "--for=condition=Finished", "js/build")
    assert "Succeeded" in kubectl("get", "js", "--field-selector=status.state=Succeeded")


def test_kubectl_validates_strictly(kubectl: Kubectl) -> None:
    told = kubectl("apply", "-f", "-", given=POD.replace("image:", "imaeg: x, image:"))
    assert 'strict decoding error: unknown field "spec.containers[0].imaeg"' in told


def test_kubectl_shows_describes_and_deletes_a_pod(kubectl: Kubectl, live: Sandbox) -> None:
    assert kubectl("apply", "-f", "-", given=POD) == "pod/job created\n"
    eventually(lambda: "Completed" in kubectl("get", "pods", "-o", "wide"))
    wide = kubectl("get", "pods", "-o", "wide")
    assert "NOMINATED NODE" in wide
    assert "sandbox-node" in wide
    described = kubectl("describe", "pod", "job")
    assert "Successfully assigned default/job to sandbox-node" in described
    assert "Exit Code:    0" in described
    assert "nothing was run" in kubectl("logs", "job")
    uid = json.loads(kubectl("get", "pod", "job", "-o", "json"))["metadata"]["uid"]
    owned = CONFIG.replace(
        "{name: settings}",
        (
            "{name: settings, ownerReferences: "
            f"[{{apiVersion: v1, kind: Pod, name: job, uid: {uid}}}]}}"
        ),
    )
    kubectl("apply", "-f", "-", given=owned)
    assert kubectl("delete", "pod", "job").startswith('pod "job" deleted')
    eventually(lambda: live.get("configmaps", "default", "settings") is None)


def test_kubectl_waits_and_watches(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=POD)
    told = kubectl("wait", "pod/job", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    assert told == "pod/job condition met\n"


def test_kubectl_tells_a_pods_events(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=POD)
    kubectl("wait", "pod/job", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    told = kubectl("events", "--for", "pod/job")
    for words in ("Successfully assigned default/job to sandbox-node", "Container started"):
        assert words in told
    listed = kubectl("get", "events", "-o", "wide")
    assert "spec.containers{main}" in listed
    assert "default-scheduler, default-scheduler-sandbox" in listed


def test_kubectl_waits_for_the_conditions_of_a_pod(kubectl: Kubectl, live: Sandbox) -> None:
    live.node.will(Run(duration=FOREVER, log=("hello",)), pod="job")
    kubectl("apply", "-f", "-", given=POD)
    for name in ("PodReadyToStartContainers", "Initialized", "Ready"):
        told = kubectl("wait", "pod/job", f"--for=condition={name}", "--timeout=60s")
        assert told == "pod/job condition met\n"
    assert kubectl("logs", "job", "-c", "main") == "hello\n"
    described = kubectl("describe", "pod", "job")
    assert "Service Account:  default" in described
    assert "/var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-" in described
    assert kubectl("delete", "pod", "job", "--grace-period=1").startswith('pod "job" deleted')
    assert "NotFound" in kubectl("get", "pod", "job")


def test_kubectl_shows_a_pod_that_is_held_back(kubectl: Kubectl) -> None:
    gated = POD.replace("spec:", "spec:\n  schedulingGates: [{name: example.com/gate}]")
    kubectl("apply", "-f", "-", given=gated)
    assert "SchedulingGated" in kubectl("get", "pods")


def test_kubectl_labels_patches_and_replaces(kubectl: Kubectl) -> None:
    text = CONFIG.replace("LEVEL", "debug")
    kubectl("create", "-f", "-", given=text)
    assert kubectl("label", "configmap", "settings", "a=b") == "configmap/settings labeled\n"
    patched = kubectl("patch", "configmap", "settings", "-p", '{"data":{"more":"1"}}')
    assert patched == "configmap/settings patched\n"
    assert kubectl("replace", "-f", "-", given=text) == "configmap/settings replaced\n"
    assert kubectl("diff", "-f", "-", given=text) == ""


def test_kubectl_lists_what_is_there(kubectl: Kubectl) -> None:
    assert "configmaps" in kubectl("api-resources")
    assert "sandbox-node" in kubectl("describe", "node", "sandbox-node")
    kubectl("get", "all,cm,secret,sa,ns,nodes,quota,leases,events", "-A")


def test_kubectl_creates_a_namespace_and_what_it_is_given_as_json(kubectl: Kubectl) -> None:
    assert kubectl("create", "namespace", "ci") == "namespace/ci created\n"
    assert kubectl("run", "one", "--image=alpine", "--restart=Never") == "pod/one created\n"
    told = kubectl("create", "configmap", "c", "--from-literal=a=b")
    assert "the sandbox reads only a Namespace as protobuf: send application/json" in told


def test_kubectl_says_what_it_may_not_do(kubectl: Kubectl, live: Sandbox) -> None:
    live.deny("create", "pods", namespace="default")
    assert 'User "sandbox-admin" cannot create resource "pods"' in kubectl(
        "apply", "-f", "-", given=POD
    )


def test_the_python_client_works(live: Sandbox, tmp_path: Path) -> None:
    client = pytest.importorskip("kubernetes.client")
    config = pytest.importorskip("kubernetes.config")
    watch = pytest.importorskip("kubernetes.watch")
    with config.new_client_from_config(str(tmp_path / "kubeconfig")) as api:
        core = client.CoreV1Api(api)
        body = {
            "metadata": {"name": "job"},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a:1"}]},
        }
        core.create_namespaced_pod("default", body)
        seen = set()
        for event in watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=60):
            seen.add(event["object"].status.phase)
            if event["object"].status.phase == "Succeeded":
                break
        assert "Succeeded" in seen
        assert "nothing was run" in core.read_namespaced_pod_log("job", "default")
        core.delete_namespaced_pod("job", "default")
        with pytest.raises(client.ApiException) as caught:
            core.read_namespaced_pod("job", "default")
        assert caught.value.status == 404
