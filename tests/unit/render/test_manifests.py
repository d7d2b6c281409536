import base64
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.api.model import Job
from engine.errors import RenderError
from engine.render.manifests import SecretValues, render_job
from engine.render.templates import Templates
from tests.unit.builders import make_job, render, write

TOKEN = {"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}}
LOGIN = {"registry": "r.example:5000", "username": "ci", "password": {"fromEnv": "ENGINE_SECRET_P"}}


def containers(job: Job) -> dict[str, dict[str, Any]]:
    spec = render(job).pod["spec"]
    return {c["name"]: c for c in (*spec.get("initContainers", ()), *spec["containers"])}


def test_a_script_travels_in_the_configmap_and_runs_with_sh_e() -> None:
    job = make_job(script="make test\n")
    made = render(job)
    assert containers(job)["main"]["command"] == ["sh", "-e", "/engine/scripts/main"]
    (configmap,) = made.dependents
    assert configmap["kind"] == "ConfigMap"
    assert configmap["data"] == {"script": "make test\n"}
    (volume,) = made.pod["spec"]["volumes"]
    assert volume["configMap"]["name"] == configmap["metadata"]["name"]
    assert volume["configMap"]["items"] == [{"key": "script", "path": "scripts/main"}]


def test_a_command_needs_no_configmap() -> None:
    job = make_job(script=None, command=["make"], args=["test"])
    made = render(job)
    assert containers(job)["main"]["command"] == ["make"]
    assert containers(job)["main"]["args"] == ["test"]
    assert made.dependents == ()
    assert "volumes" not in made.pod["spec"]


def test_the_images_own_entry_point_is_left_alone() -> None:
    assert "command" not in containers(make_job(script=None))["main"]


def test_files_are_mounted_by_their_paths() -> None:
    job = make_job(files={"config/app.toml": "a", "ä b.txt": "b", "config/app_toml": "c"})
    made = render(job)
    items = made.pod["spec"]["volumes"][0]["configMap"]["items"]
    content = {item["path"]: made.dependents[0]["data"][item["key"]] for item in items}
    assert content == {
        "scripts/main": "make test\n",
        "files/config/app.toml": "a",
        "files/ä b.txt": "b",
        "files/config/app_toml": "c",
    }
    mount = containers(job)["main"]["volumeMounts"]
    assert mount == [{"name": "engine-config", "mountPath": "/engine", "readOnly": True}]


def test_secrets_reach_the_main_container_as_references_and_never_as_values() -> None:
    job = make_job(secrets=TOKEN)
    made = render(job, SecretValues({"TOKEN": "hunter2"}))
    (variable,) = containers(job)["main"]["env"]
    reference = {"name": made.pod["metadata"]["name"], "key": "TOKEN"}
    assert variable == {"name": "TOKEN", "valueFrom": {"secretKeyRef": reference}}
    assert made.dependents[0]["type"] == "Opaque"
    assert made.dependents[0]["data"] == {"TOKEN": base64.b64encode(b"hunter2").decode()}
    assert "hunter2" not in str(made.pod)


def test_without_values_the_secret_is_masked() -> None:
    secret = render(make_job(secrets=TOKEN, registryCredentials=[LOGIN])).dependents[0]
    assert secret["data"] == {"TOKEN": "***", ".dockerconfigjson": "***"}


def test_credentials_make_a_pull_secret() -> None:
    made = render(make_job(registryCredentials=[LOGIN]), SecretValues({}, ("pw",)))
    secret = made.dependents[0]
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    assert made.pod["spec"]["imagePullSecrets"] == [{"name": secret["metadata"]["name"]}]


def test_a_secret_of_the_namespace_is_referred_to_by_every_container_that_names_it() -> None:
    own, other = {"value": "x"}, {"fromSecret": {"name": "ci", "key": "k"}}
    job = make_job(
        script=None,
        secrets={"A": own, "B": other},
        services=[{"name": "db", "image": "db", "secrets": ["B"]}],
        initContainers=[{"name": "first", "image": "f", "secrets": ["B", "A"]}],
    )
    made = render(job, SecretValues({"A": "x"}))
    a = {"name": made.pod["metadata"]["name"], "key": "A"}
    b = {"name": "ci", "key": "k"}
    referred = {
        name: {v["name"]: v["valueFrom"]["secretKeyRef"] for v in container["env"]}
        for name, container in containers(job).items()
    }
    assert referred == {"main": {"A": a, "B": b}, "db": {"B": b}, "first": {"B": b, "A": a}}
    (secret,) = made.dependents
    assert [*secret["data"]] == ["A"]


def test_a_job_that_only_refers_to_secrets_has_none_of_its_own() -> None:
    key = {"fromSecret": {"name": "ci", "key": "k"}}
    job = make_job(
        script=None, secrets={"T": key}, registryCredentials=[{"fromSecret": {"name": "login"}}]
    )
    made = render(job)
    assert made.dependents == ()
    assert made.pod["spec"]["imagePullSecrets"] == [{"name": "login"}]


def test_logins_of_both_kinds_stand_side_by_side() -> None:
    made = render(make_job(registryCredentials=[{"fromSecret": {"name": "login"}}, LOGIN]))
    own = {"name": made.pod["metadata"]["name"]}
    assert made.pod["spec"]["imagePullSecrets"] == [own, {"name": "login"}]
    assert made.dependents[0]["data"] == {".dockerconfigjson": "***"}


def test_only_a_service_that_names_a_secret_gets_it() -> None:
    redis = {"name": "redis", "image": "redis:7"}
    job = make_job(secrets=TOKEN, services=[redis, {**redis, "name": "db", "secrets": ["TOKEN"]}])
    assert "env" not in containers(job)["redis"]
    assert containers(job)["db"]["env"][0]["name"] == "TOKEN"


def test_services_are_native_sidecars() -> None:
    job = make_job(services=[{"name": "redis", "image": "redis:7", "ports": [6379]}])
    spec = render(job).pod["spec"]
    assert spec["initContainers"][0]["restartPolicy"] == "Always"
    assert spec["initContainers"][0]["ports"] == [{"containerPort": 6379}]
    assert [c["name"] for c in spec["containers"]] == ["main"]


def test_services_start_before_init_containers_that_may_need_them() -> None:
    job = make_job(
        services=[{"name": "db", "image": "db"}],
        initContainers=[{"name": "migrate", "image": "m", "script": "migrate"}],
    )
    assert [c["name"] for c in render(job).pod["spec"]["initContainers"]] == ["db", "migrate"]
    assert containers(job)["migrate"]["command"] == ["sh", "-e", "/engine/scripts/migrate"]


def test_a_pod_is_never_restarted() -> None:
    assert render(make_job()).pod["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("field", ["nodeSelector", "tolerations", "serviceAccountName"])
def test_pod_fields_reach_the_pod(field: str) -> None:
    values: dict[str, Any] = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "x"}],
        "serviceAccountName": "b",
    }
    assert render(make_job(**{field: values[field]})).pod["spec"][field] == values[field]


def test_container_fields_reach_the_container() -> None:
    fields: dict[str, Any] = {
        "resources": {"limits": {"memory": "256Mi"}},
        "workingDir": "/src",
        "securityContext": {"runAsUser": 1},
    }
    assert fields.items() <= containers(make_job(**fields))["main"].items()


@pytest.mark.parametrize(
    ("value", "sent"),
    [("$(HOME)", "$$(HOME)"), ("$HOME", "$HOME"), ("a$$b", "a$$$$b"), ("5$", "5$")],
)
def test_kubernetes_expands_nothing_in_env_values(value: str, sent: str) -> None:
    assert containers(make_job(env={"A": value}))["main"]["env"] == [{"name": "A", "value": sent}]


def test_a_users_template_set_comes_before_the_built_in_one(tmp_path: Path) -> None:
    write(tmp_path, "job/configmap.yaml.j2", "apiVersion: v1\nkind: ConfigMap\ndata: {own: x}\n")
    made = render_job(Templates(tmp_path), make_job(), 1, secrets=None)
    assert made.dependents[0]["data"] == {"own": "x"}
    assert made.pod["kind"] == "Pod"


def test_a_template_that_makes_another_kind_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "job/pod.yaml.j2", "apiVersion: v1\nkind: Secret\n")
    with pytest.raises(RenderError, match=r"must make a v1 Pod, not v1 Secret"):
        render_job(Templates(tmp_path), make_job(), 1, secrets=None)


def test_four_times_the_containers_and_files_are_no_more_than_four_times_the_work() -> None:
    def calls(count: int) -> int:
        some = [{"name": f"c{n}", "image": "redis:7"} for n in range(2 * count)]
        files = {f"f{n}": "a" for n in range(count)}
        job = make_job(files=files, services=some[:count], initContainers=some[count:])
        seen = [0]

        def count_call(_frame: object, event: str, _argument: object) -> None:
            seen[0] += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            containers(job)
        finally:
            sys.setprofile(None)
        return seen[0]

    few, many = calls(25), calls(100)
    assert many < 5 * few
