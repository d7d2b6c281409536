"""What people get wrong: other tools' names, types, and what only a cluster would refuse."""

import json
from typing import Any

import pytest

from engine.files import resource_dir
from tests.unit.builders import document, lines_of, load_document, make_job, render

SCHEMA: dict[str, Any] = json.loads(
    (resource_dir("schemas") / "job.v1alpha1.schema.json").read_text(encoding="utf-8")
)
OTHER_NAMES: dict[str, str] = SCHEMA["definitions"]["spec"]["x-other-names"]


def problems(**spec: Any) -> list[str]:
    return [line.split(": ", 1)[1] for line in lines_of(load_document(document(**spec)))]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_the_name_of_another_tool_leads_to_ours(name: str) -> None:
    (problem,) = problems(**{name: "x"})
    assert problem == f'unknown field "spec.{name}" ({OTHER_NAMES[name]})'


def test_there_are_forty_of_them_and_none_is_a_field() -> None:
    assert len(OTHER_NAMES) >= 40
    for name, hint in {
        "variables": "env",
        "backoffLimit": "retry: {max: 2}",
        "activeDeadlineSeconds": "timeout",
        "needs": "dependsOn",
        "imagePullSecrets": "registryCredentials",
    }.items():
        assert hint in OTHER_NAMES[name]


def test_of_an_unknown_field_the_three_nearest_are_named() -> None:
    (problem,) = problems(setTimeoutTo="x")
    assert problem.startswith('unknown field "spec.setTimeoutTo" (')
    (far,) = problems(zzz="x")
    assert far.count(",") == 2
    assert far.endswith("; engine explain spec lists all)")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"script": ["make"]}, "spec.script must be a string, not a list (| begins a text"),
        ({"env": ["A=b"]}, 'spec.env must be a mapping, not a list (such as {"LEVEL": "debug"})'),
        ({"args": "test"}, 'spec.args must be a list, not a string (such as ["test"])'),
        ({"retry": 2}, 'spec.retry must be a mapping, not the number 2 (such as {"max": 2})'),
        ({"tolerations": [{"operator": "Exist"}]}, '"Exist" is not allowed (did you mean Exists?)'),
        ({"tolerations": [{"effect": "NoStart"}]}, '"NoStart" is not allowed'),
        ({"workingDir": "src"}, 'spec.workingDir: "src" is not valid (an absolute path'),
        (
            {"resources": {"limits": {"memory": "128m"}}},
            "memory 128m is 0.128 bytes",
        ),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}},
            "spec.resources.requests.cpu 1500m is over the limit, 1",
        ),
        ({"image": "Alpine:3.20"}, "warning: spec.image: no image has upper case letters"),
        ({"env": {"PATH": "/x:$PATH"}}, "warning: spec.env.PATH: $PATH is not expanded"),
        ({"env": {"A": "${HOME}/x"}}, "warning: spec.env.A: ${HOME} is not expanded"),
    ],
)
def test_a_mistake_is_found_and_its_message_says_what_to_write(
    spec: dict[str, Any], words: str
) -> None:
    (problem,) = problems(**spec)
    assert words in problem


@pytest.mark.parametrize(
    "spec",
    [
        {"image": "Registry.example:5000/team/tool:V1.2-RC"},
        {"image": "tool@sha256:" + "A" * 64},
        {"env": {"A": "5$", "B": "$$HOME", "C": "^a$|b"}},
        {"resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1024Mi"}}},
        {"tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}]},
    ],
)
def test_what_is_right_is_no_mistake(spec: dict[str, Any]) -> None:
    assert problems(**spec) == []


def test_all_problems_of_a_document_are_found_in_one_round() -> None:
    found = problems(
        image=3,
        script=["x"],
        secrets={"A": {"fromFile": "../x"}, "B": {"fromfile": "y"}},
        services=[
            {"name": "main", "image": "x", "secrets": ["NO", "B"]},
            {"name": "db", "image": 5},
        ],
        timeout="0",
    )
    for words in (
        "spec.image must be a string",
        "spec.script must be a string",
        "fromFile ../x leads out",
        "spec.secrets.B",
        "two containers are named main",
        "the job has no secret NO",
        "spec.services[1].image must be a string",
        "spec.timeout is 0",
    ):
        assert sum(words in line for line in found) == 1, (words, found)
    assert len(found) == 8


def test_an_unknown_field_of_a_pod_patch_hides_no_policy_that_restarts_the_pod() -> None:
    found = problems(podPatch={"spec": {"restartPolicy": "OnFailure", "hostNetwrk": True}})
    assert [line.partition(" (")[0].partition("spec.podPatch")[2] for line in found] == [
        ".spec.restartPolicy is OnFailure",
        '.spec.hostNetwrk"',
    ]


def test_a_volume_without_a_source_is_told_what_there_is() -> None:
    (problem,) = problems(volumes=[{"name": "cache", "mountPath": "/cache"}])
    assert "(exactly one of: emptyDir, image, persistentVolumeClaim)" in problem


def test_a_variable_of_the_container_is_expanded_by_kubernetes_and_nothing_else() -> None:
    job = make_job(
        env={"URL": "db://$(TOKEN)@x", "TWO": "$(URL) $(HOME) $$(URL) $$ $(sh)"},
        secrets={"TOKEN": {"value": "anything"}},
    )
    main = next(c for c in render(job).pod["spec"]["containers"] if c["name"] == "main")
    own = [one for one in main["env"] if not one["name"].startswith("ENGINE_")]
    assert [one["name"] for one in own] == ["TOKEN", "URL", "TWO"]
    assert own[1]["value"] == "db://$(TOKEN)@x"
    assert own[2]["value"] == "$(URL) $$(HOME) $$(URL) $$$$ $$(sh)"
