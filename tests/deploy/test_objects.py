"""The chart of an engine that runs JobSpec objects: definitions, policies, rights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from deploy.admission_policy import admission_policies
from deploy.crd import custom_resource_definitions
from tests.cluster.cluster import Cluster
from tests.cluster.helm import CHART, Helm
from tests.deploy.test_chart import VALUES, Object, argv, granted, named, of_kind
from tests.support.client import Client, eventually
from tests.support.definitions import DEFINITIONS, install_definitions

OBJECTS = VALUES / "objects.yaml"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
READ = {"get", "list", "watch"}


def test_the_definitions_are_those_of_the_schemas_and_outlive_the_release(helm: Helm) -> None:
    found = of_kind(helm.template(OBJECTS), "CustomResourceDefinition")
    assert [one["spec"] for one in found] == [one["spec"] for one in custom_resource_definitions()]
    for one in found:
        assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("settings", [[], ['engine.config={"limits": {"allowedImages": ["a*"]}}']])
def test_the_policies_are_made_of_the_limits_of_the_configuration(
    helm: Helm, settings: list[str]
) -> None:
    documents = helm.template(OBJECTS, settings=settings)
    config = named(documents, "ConfigMap")["data"]["engine.yaml"]
    limits = YAML(typ="safe").load(config)["limits"]
    expected = [one["spec"] for one in admission_policies(limits) if one["kind"] == POLICY]
    assert [one["spec"] for one in of_kind(documents, POLICY)] == expected


def test_a_policy_is_bound_where_the_engine_runs_jobs(helm: Helm) -> None:
    documents = helm.template(OBJECTS, settings=['engine.jobs={"namespaces": ["web"]}'])
    for binding in of_kind(documents, BINDING):
        chosen = binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"]
        assert chosen == {"kubernetes.io/metadata.name": "web"}
        assert binding["spec"]["policyName"] == binding["metadata"]["name"]
    everywhere = ['engine.jobs={"namespaces": [], "allNamespaces": true}']
    for binding in of_kind(helm.template(OBJECTS, settings=everywhere), BINDING):
        assert "matchResources" not in binding["spec"]


def test_the_engine_reads_objects_and_writes_their_status_alone(helm: Helm) -> None:
    rights = granted(helm.template(OBJECTS), "Role")
    assert rights["jobspecs"] == READ
    assert rights["jobdefaults"] == READ - {"get"}
    assert rights["configmaps"] == {"create", "get", "patch", "delete"}
    assert rights["jobspecs/status"] == {"update"}


def test_a_cleaner_records_the_outcome_of_a_pod_in_the_status_of_its_object(helm: Helm) -> None:
    only = "engine.enabled=false", "cleaner.enabled=true"
    rights = granted(helm.template(OBJECTS, settings=only), "Role")
    assert (rights["jobspecs"], rights["jobspecs/status"]) == ({"get"}, {"update"})
    assert "jobspecs" not in granted(helm.template(settings=only), "Role")


def test_edit_and_view_have_the_rights_of_their_names(helm: Helm) -> None:
    documents = helm.template(OBJECTS)
    roles = {one["metadata"]["name"]: one for one in of_kind(documents, "ClusterRole")}
    for name, verbs in (
        ("edit", {"create", "update", "patch", "delete", "deletecollection"}),
        ("view", READ),
    ):
        role = roles[f"jobs.engine:{name}"]
        label = f"rbac.authorization.k8s.io/aggregate-to-{name}"
        assert role["metadata"]["labels"][label] == "true"
        (rule,) = role["rules"]
        assert rule["resources"] == ["jobspecs", "jobdefaults"]
        assert set(rule["verbs"]) == verbs


def test_another_release_can_bring_the_definitions(helm: Helm) -> None:
    documents = helm.template(OBJECTS, settings=['crds={"install": false}'])
    assert not of_kind(documents, "CustomResourceDefinition")
    assert not [
        one for one in of_kind(documents, "ClusterRole") if "jobs.engine" in one["metadata"]["name"]
    ]
    assert of_kind(documents, POLICY)


def test_an_engine_of_files_brings_none_of_it(helm: Helm) -> None:
    kinds = {one["kind"] for one in helm.template(VALUES / "git.yaml")}
    assert not kinds & {"CustomResourceDefinition", POLICY, BINDING}


def test_it_takes_objects_in_place_of_a_folder(helm: Helm) -> None:
    arguments = argv(helm.template(OBJECTS))
    assert {"--from-cluster", "--selector=team=web"} <= set(arguments)
    assert not [one for one in arguments if one.startswith("/specs")]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('engine.jobs={"namespaces": ["a", "b"]}', "objects takes one namespace"),
        ("engine.prune=true", "engine.prune is for files"),
    ],
)
def test_what_objects_cannot_have_is_refused_by_name(helm: Helm, setting: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        helm.template(OBJECTS, settings=[setting])


@pytest.mark.alone
def test_objects_outlive_the_release_and_go_with_their_namespace_and_definition(
    helm: Helm, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    client = Client.from_kubeconfig(cluster.kubeconfig)
    path = f"/apis/jobs.engine/v1alpha1/namespaces/{namespace}/jobspecs"
    values = tmp_path / "values.json"

    def run(verb: str, *options: str, **limits: Any) -> None:
        engine = {
            "replicas": 0,
            "jobs": {"namespaces": [namespace]},
            "specs": {"from": "objects"},
            "config": {"limits": limits},
        }
        values.write_text(json.dumps({"engine": engine}))
        given = [str(CHART), f"--values={values}", *options] if verb != "uninstall" else []
        done = helm.run(
            verb, "objects", *given, f"--namespace={namespace}", kubeconfig=cluster.kubeconfig
        )
        assert done.returncode == 0, done.stderr

    try:
        run("install", "--take-ownership")
        install_definitions(client)
        made = client.post(path, _job("kept"))
        assert made.code == 201, made.body
        status = {"status": {"state": "Succeeded", "observedGeneration": 1}}
        assert client.patch(f"{path}/kept/status", status).code == 200

        run("upgrade", allowedImages=["alpine*"])
        eventually(lambda: client.post(path, _job("x", "evil"), dryRun="All").code == 422)
        assert client.post(path, _job("other", "alpine"), dryRun="All").code == 201
        run("uninstall")
        kept = client.get(f"{path}/kept").body
        assert kept["metadata"]["uid"] == made.body["metadata"]["uid"]
        assert kept["status"] == status["status"]
        eventually(lambda: client.post(path, _job("x", "evil"), dryRun="All").code == 201)

        # No engine is there to remove anything, and no finalizer asks for one.
        client.delete(f"/api/v1/namespaces/{namespace}")
        eventually(lambda: client.get(f"/api/v1/namespaces/{namespace}").code == 404)
        for definition in custom_resource_definitions():
            one = f"{DEFINITIONS}/{definition['metadata']['name']}"
            client.delete(one)
            eventually(lambda one=one: client.get(one).code == 404)  # type: ignore[misc]
        assert client.get(path).code == 404
    finally:
        install_definitions(client)


def _job(name: str, image: str = "alpine") -> Object:
    return {
        "apiVersion": "jobs.engine/v1alpha1",
        "kind": "JobSpec",
        "metadata": {"name": name},
        "spec": {"image": image},
    }
