"""Whatever a string of a spec holds, it reaches the manifest as it is and adds nothing to it."""

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.api.model import Job
from engine.errors import Severity
from engine.render.manifests import SecretValues
from engine.transform import transform
from tests.unit.builders import context, document, load_document, make_job, render
from tests.unit.strategies import process_text

SERVICE = {"name": "redis", "image": "redis:7"}
INIT = {"name": "prepare", "image": "busybox"}


def load(data: dict[str, Any]) -> Job:
    loaded = load_document(data)
    assert all(problem.severity is Severity.WARNING for problem in loaded.problems)
    return loaded.jobs[0]


def shape(value: Any) -> Any:
    """The structure of a manifest: its keys and types, with every string left out."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


def main_of(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(c for c in pod["spec"]["containers"] if c["name"] == "main")
    return found


def expanded(value: str) -> str:
    """What the kubelet makes of an env value: `$$` is `$`; there is no variable to expand."""
    out, rest = "", value
    while rest:
        pair = rest.startswith("$$")
        out += rest[0]
        rest = rest[2 if pair else 1 :]
    return out


@given(process_text)
def test_an_env_value_reaches_the_container_as_written(text: str) -> None:
    job = load(document(env={"A": text}, services=[{**SERVICE, "env": {"B": text}}]))
    pod = render(job).pod
    (variable,) = main_of(pod)["env"]
    assert expanded(variable["value"]) == text
    assert "$(" not in variable["value"].replace("$$", "")
    assert expanded(pod["spec"]["initContainers"][0]["env"][0]["value"]) == text
    assert shape(pod) == shape(
        render(make_job(env={"A": "x"}, services=[{**SERVICE, "env": {"B": "x"}}])).pod
    )


@given(process_text.filter(bool))
def test_a_script_reaches_the_configmap_as_written(text: str) -> None:
    job = load(document(script=text, initContainers=[{**INIT, "script": text}]))
    made = render(job)
    assert made.dependents[0]["data"] == {"script": text, "script.prepare": text}
    assert shape(made.pod) == shape(render(make_job(initContainers=[{**INIT, "script": "x"}])).pod)


@given(st.lists(process_text, min_size=1, max_size=3))
def test_command_and_args_reach_the_container_as_written(texts: list[str]) -> None:
    made = render(load(document(script=None, command=texts, args=texts)))
    assert main_of(made.pod)["command"] == texts
    assert main_of(made.pod)["args"] == texts
    assert made.dependents == ()


@given(process_text)
def test_a_files_content_reaches_the_configmap_as_written(text: str) -> None:
    job = load(document(files={"config/app.toml": text}))
    (configmap,) = render(job).dependents
    assert configmap["data"] == {"script": "make test\n", "file.0.config_app.toml": text}
    assert configmap["kind"] == "ConfigMap"


@given(process_text)
def test_annotations_and_image_survive(text: str) -> None:
    text = text[:1024]
    data = document(image=text or "x", workingDir="/work", nodeSelector={"a": text})
    data["metadata"]["annotations"] = {"note": text}
    pod = render(load(data)).pod
    assert pod["metadata"]["annotations"] == {"note": text}
    assert main_of(pod)["image"] == (text or "x")
    assert pod["spec"]["nodeSelector"] == {"a": text}
    assert pod["kind"] == "Pod"


@given(st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", fullmatch=True))
def test_a_labels_value_stays_a_string(text: str) -> None:
    data = document()
    data["metadata"]["labels"] = {"team": text}
    assert render(load(data)).pod["metadata"]["labels"] == {"team": text}


@given(st.integers(1000, 1100), process_text)
def test_a_very_long_name_of_a_variable_survives(length: int, text: str) -> None:
    name = "a" * length
    (variable,) = main_of(render(load(document(env={name: text}))).pod)["env"]
    assert (variable["name"], expanded(variable["value"])) == (name, text)


@given(st.dictionaries(process_text, process_text, max_size=3))
def test_keys_of_free_mappings_survive(mapping: dict[str, Any]) -> None:
    pod = render(load(document(nodeSelector=mapping))).pod
    assert pod["spec"]["nodeSelector"] == mapping


@given(process_text, process_text)
def test_secret_values_reach_the_secret_as_written(token: str, password: str) -> None:
    entry = {"registry": "r.example", "username": "ci", "password": {"fromEnv": "ENGINE_SECRET_P"}}
    job = make_job(secrets={"TOKEN": {"fromEnv": "ENGINE_SECRET_T"}}, registryCredentials=[entry])
    secret = render(job, SecretValues({"TOKEN": token}, (password,))).dependents[0]
    data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    assert data["TOKEN"] == token
    auth = json.loads(data[".dockerconfigjson"])["auths"]["r.example"]
    assert auth["password"] == password
    assert base64.b64decode(auth["auth"]).decode() == f"ci:{password}"


@given(process_text)
def test_transforms_leave_every_string_alone(text: str) -> None:
    job = load(document(env={"A": text}, files={"f": text}))
    made = render(job)
    pod, configmap = (transform(m, context(job)) for m in (made.pod, made.dependents[0]))
    assert main_of(pod)["env"][-1:] == main_of(made.pod)["env"]
    assert configmap["data"] == made.dependents[0]["data"]
