"""The policies for JobSpec objects on a real API server: one spec, one verdict at both doors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.admission_policy import admission_policies
from engine.api.schema_docs import explain_field
from engine.api.yaml_reader import read_yaml
from engine.files import resource_dir
from tests.contract.conftest import kubeconfig_of
from tests.support.client import Client, Obj, eventually
from tests.support.definitions import APPLY, install_definitions
from tests.unit.api import test_bad_input

pytestmark = pytest.mark.cluster

(_table,) = getattr(test_bad_input.test_a_bad_field_has_one_line_at_its_place, "pytestmark")  # noqa: B009 - mypy knows functions without marks
BAD = _table.args[1]
"""(lines below a spec, what `engine validate` says of them)."""
THE_ENGINE_SAYS = (
    *("must be a string, not empty", "is 0, which would end", "activeDeadlineSeconds can be"),
    *("is below a, which is a file", "two containers are named", "the job has no secret"),
)
"""What neither a schema nor a policy can say."""
LIMITS: Obj = {
    "maxTimeout": "6h",
    "maxStartTimeout": 600,
    "maxTtl": "30d",
    "maxAttempts": 3,
    "allowedPullPolicies": ["Always", "IfNotPresent"],
    "allowedImages": ["busybox*", "alpine"],
    "allowedNamespaces": ["admission-*"],
    "allowedServiceAccounts": [],
    "allowedSecrets": ["ci-*"],
    "allowPodPatch": [],
}
POLICIES = "/apis/admissionregistration.k8s.io/v1"
OBJECTS = "/apis/jobs.engine/v1alpha1/namespaces"


class Namespace:
    """A namespace whose JobSpecs the policies judge, and the ways to write one."""

    def __init__(self, client: Client, kubectl: list[str], name: str) -> None:
        self.client, self.name, self._kubectl = client, name, kubectl
        self.path = f"{OBJECTS}/{name}/jobspecs"

    def post(self, job: Obj) -> str:
        """What the server says; empty if it takes the object."""
        reply = self.client.post(self.path, job, dryRun="All")
        return "" if reply.code == 201 else f"{reply.message}"

    def warning(self, job: Obj) -> str:
        """What the server warns of when it takes the object."""
        reply = self.client.post(self.path, job, dryRun="All")
        return str(reply.headers.get("Warning") or "") if reply.code == 201 else ""

    def apply(self, job: Obj) -> str:
        path = f"{self.path}/{job['metadata']['name']}"
        reply = self.client.patch(path, job, APPLY, fieldManager="test", dryRun="All")
        return "" if reply.code in (200, 201) else f"{reply.code} {reply.message}"

    def explain(self, field: str) -> str:
        done = subprocess.run(
            [*self._kubectl, "explain", field], capture_output=True, text=True, check=False
        )
        return done.stdout

    def kubectl(self, job: Obj) -> str:
        command = [*self._kubectl, "apply", "--dry-run=server", "-n", self.name, "-f", "-"]
        done = subprocess.run(
            command, input=json.dumps(job), capture_output=True, text=True, check=False
        )
        return "" if done.returncode == 0 else done.stderr


def new_job(**spec: Any) -> Obj:
    return {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": "build"},
        "spec": {"image": "alpine", **spec},
    }


def admitted(request: pytest.FixtureRequest, limits: Obj) -> Iterator[Namespace]:
    """Policies of this name alone, bound to one namespace, as other tests have JobSpecs, too."""
    kubeconfig = kubeconfig_of(request)
    client = Client.from_kubeconfig(kubeconfig)
    install_definitions(client)
    name = f"admission-{uuid.uuid4().hex[:8]}"
    client.post("/api/v1/namespaces", {"metadata": {"name": name}})
    paths = []
    for made in admission_policies(limits):
        made["metadata"]["name"] = f"{name}.{made['metadata']['name']}"
        plural = "validatingadmissionpolicies"
        if made["kind"].endswith("Binding"):
            plural = "validatingadmissionpolicybindings"
            made["spec"]["policyName"] = made["metadata"]["name"]
            labels = {"kubernetes.io/metadata.name": name}
            made["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": labels}}
        stored = client.post(f"{POLICIES}/{plural}", made)
        assert stored.code == 201, stored.body
        paths.append(f"{POLICIES}/{plural}/{made['metadata']['name']}")
    namespace = Namespace(client, [kubectl_of(request), f"--kubeconfig={kubeconfig}"], name)
    warned = new_job(secrets={"A": {"value": "x"}})
    eventually(lambda: namespace.post(new_job(unknown=1)) and namespace.warning(warned))
    yield namespace
    for path in (*paths, f"/api/v1/namespaces/{name}"):
        client.delete(path)


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest) -> Iterator[Namespace]:
    yield from admitted(request, {})


@pytest.fixture(scope="module")
def limited(request: pytest.FixtureRequest) -> Iterator[Namespace]:
    yield from admitted(request, LIMITS)


def kubectl_of(request: pytest.FixtureRequest) -> str:
    if os.environ.get("ENGINE_TEST_KUBECONFIG"):
        return shutil.which("kubectl") or "kubectl"
    return str(request.getfixturevalue("cluster").kubectl)


@pytest.mark.parametrize("write", [Namespace.kubectl, Namespace.apply, Namespace.post])
def test_a_misspelt_field_is_refused_in_one_way_however_it_is_written(
    plain: Namespace, write: Callable[[Namespace, Obj], str]
) -> None:
    assert 'unknown field "spec.timout"' in write(plain, new_job(timout="1h"))
    assert 'unknown field "sepc"' in write(plain, {**new_job(), "sepc": {}})
    assert write(plain, new_job(timeout="1h")) == ""


@pytest.mark.parametrize("write", [Namespace.apply, Namespace.post])
def test_what_a_file_may_not_say_an_object_may_not_either(
    plain: Namespace, write: Callable[[Namespace, Obj], str]
) -> None:
    wrong = []
    for written, line in BAD:
        documents, unreadable = read_yaml((test_bad_input.SPEC + written).encode(), "job.yaml")
        if unreadable:
            continue
        is_left = any(words in line for words in THE_ENGINE_SAYS)
        said = write(plain, documents[0].data)
        if bool(said) is is_left and not (said and "not empty" in line):  # no null is applied
            wrong.append(line)
    assert wrong == []


def test_every_example_is_taken_but_what_reads_the_engines_machine(plain: Namespace) -> None:
    for file in sorted(Path(str(resource_dir("examples"))).rglob("*.yaml")):
        text = file.read_bytes()
        for document in read_yaml(text, str(file))[0]:
            if document.data.get("kind") == "JobSpec":
                document.data["metadata"].pop("namespace", None)
                said = plain.post(document.data)
                if "matrix" in document.data["spec"]:
                    assert "an object is one: keep it in a file" in said
                    continue
                reads = b"fromEnv" in text or b"fromFile" in text
                assert ("fromEnv and fromFile read the engine's own machine" in said) is reads
                assert reads or not said, (file, said)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"image": "evil"}, "spec.image evil is not allowed (limits.allowedImages)"),
        ({"services": [{"name": "a", "image": "evil"}]},
         "spec.services[].image evil is not allowed (limits.allowedImages)"),
        ({"serviceAccountName": "x"},
         "spec.serviceAccountName x is not allowed (limits.allowedServiceAccounts)"),
        ({"secrets": {"A": {"fromSecret": {"name": "root", "key": "k"}}}},
         "spec.secrets{}.fromSecret.name root is not allowed (limits.allowedSecrets)"),
        ({"pullPolicy": "Never"}, "spec.pullPolicy has none of the allowed pull policies"),
        ({"retry": {"max": 3}}, "spec.retry.max: a run could have too many attempts"),
        ({"ttl": "forever"}, "spec.ttl: forever is not allowed (limits.maxTtl)"),
        ({"podPatch": {"spec": {"hostNetwork": True}}}, "spec.podPatch: is not allowed"),
    ],
)  # fmt: skip
def test_the_operators_limits_are_kept(limited: Namespace, spec: Obj, words: str) -> None:
    assert words in limited.post(new_job(**spec))


@pytest.mark.parametrize("timeout", ["9h", "2d", 21601, "21601", "6h1s", "1w"])
def test_a_time_beyond_a_limit_is_a_warning_as_it_is_for_a_file(
    limited: Namespace, timeout: str | int
) -> None:
    assert "spec.timeout: is cut to the limit" in limited.warning(new_job(timeout=timeout))
    job = new_job(timeout="6h")
    assert (limited.post(job), limited.warning(job)) == ("", "")


def test_the_value_of_a_secret_is_a_warning(plain: Namespace) -> None:
    assert "use fromSecret" in plain.warning(new_job(secrets={"A": {"value": "x"}}))


def test_kubectl_explains_a_field_in_the_words_of_engine_explain(plain: Namespace) -> None:
    said = explain_field("JobSpec", ["spec", "pullPolicy"])
    words = f"{said.description} One of: {', '.join(said.choices)}."
    # The server publishes a new definition's types some time after it serves its objects.
    eventually(lambda: words in " ".join(plain.explain("jobspec.spec.pullPolicy").split()))


def test_what_was_there_before_a_limit_can_still_be_labelled_and_deleted(
    limited: Namespace,
) -> None:
    assert limited.client.post(limited.path, new_job()).code == 201
    path = f"{limited.path}/build"
    labels = {"metadata": {"labels": {"a": "b"}, "finalizers": ["engine.test/x"]}}
    assert limited.client.patch(path, labels).code == 200
    assert limited.client.patch(path, {"spec": {"image": "evil"}}).code == 422
    assert limited.client.patch(path, {"metadata": {"finalizers": None}}).code == 200
    assert limited.client.delete(path).code == 200
