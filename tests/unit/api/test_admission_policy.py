"""What the policies refuse of a JobSpec object is what `engine validate` refuses of a file."""

import json
import re
from typing import Any

import pytest

from deploy.admission_policy import admission_policies, one_pattern
from engine.api.checks import matches_any
from engine.api.model import JobObject
from engine.api.parse import SpecText
from engine.api.yaml_reader import read_yaml
from engine.files import resource_dir
from tests.support.policies import refusals
from tests.unit.builders import document, lines_of, load_document, load_texts, make_config

(DENY, _, WARN, _) = admission_policies({})


def told(limits: dict[str, Any] | None = None, /, **spec: Any) -> list[str]:
    policy = admission_policies(limits or {})[0]
    job = document(**spec)
    job["metadata"]["namespace"] = "ci"
    return refusals(policy, job)


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"timout": "5m"}, 'unknown field "spec.timout"'),
        ({"retry": {"mx": 1}}, 'unknown field "spec.retry.mx" (one of: max, on)'),
        ({"services": [{"name": "a", "image": "b"}, {"name": "c", "image": "d", "x": 1}]},
         ('unknown field "spec.services[].x" (one of: args, command, env, image, name, ports, '
         "pullPolicy, ready, resources, secrets, securityContext, workingDir)")),
        ({"secrets": {"A": {"fromSecret": {"name": "a", "key": "k", "ns": "x"}}}},
         'unknown field "spec.secrets{}.fromSecret.ns" (one of: key, name)'),
        ({"env": {"a b": "x"}},
         ('spec.env: "a b" is not a valid name (an environment variable is named with letters, '
         "digits, _, - and ., starting with a letter or _)")),
        ({"files": {"../x": ""}}, ('spec.files: "../x" is not a valid name (a relative path '
         "without '.', '..' or a leading or trailing '/')")),
        ({"pullPolicy": "always"},
         "spec.pullPolicy: one of Always, IfNotPresent, Never, or a list of 1 to 10 of them"),
        ({"pullPolicy": []},
         "spec.pullPolicy: one of Always, IfNotPresent, Never, or a list of 1 to 10 of them"),
        ({"services": [{"name": "a", "image": "b", "pullPolicy": ["Nevr"]}]},
         ("spec.services[].pullPolicy: one of Always, IfNotPresent, Never, or a list of 1 to 10 "
         "of them")),
        ({"dependsOn": ["lint", {"name": "test", "when": "finished"}]},
         ("spec.dependsOn[]: the name of a job of the same namespace, as its metadata has it, "
          "or a mapping of name, on")),
        ({"resources": {"limits": {"cpu": "much"}}},
         ("spec.resources.limits{}: a quantity is a number with an optional unit: 100m, 0.5, "
         "256Mi, 2G")),
    ],
)  # fmt: skip
def test_what_a_schema_cannot_say_is_refused_with_its_field(
    spec: dict[str, Any], line: str
) -> None:
    assert told(**spec) == [line]
    assert lines_of(load_document(document(**spec))), "a file says it, too"


LIMITS = {
    "maxAttempts": 3,
    "maxTtl": "30d",
    "allowedPullPolicies": ["Always"],
    "allowedImages": ["alpine*", "team-[ab]/*"],
    "allowedNamespaces": ["ci", "ci-*"],
    "allowedServiceAccounts": [],
    "allowedSecrets": ["ci-*"],
    "allowPodPatch": [],
    "maxJobs": 5,
}


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"image": "busybox"}, "spec.image busybox is not allowed (limits.allowedImages)"),
        ({"services": [{"name": "a", "image": "alpine"}, {"name": "b", "image": "evil"}]},
         "spec.services[].image evil is not allowed (limits.allowedImages)"),
        ({"serviceAccountName": "x"},
         "spec.serviceAccountName x is not allowed (limits.allowedServiceAccounts)"),
        ({"secrets": {"A": {"fromSecret": {"name": "root", "key": "k"}}}},
         "spec.secrets{}.fromSecret.name root is not allowed (limits.allowedSecrets)"),
        ({"registryCredentials": [{"fromSecret": {"name": "root"}}]},
         "spec.registryCredentials[].fromSecret.name root is not allowed (limits.allowedSecrets)"),
        ({"pullPolicy": ["Never"]},
         "spec.pullPolicy has none of the allowed pull policies (limits.allowedPullPolicies)"),
        ({"retry": {"max": 3}},
         "spec.retry.max: a run could have too many attempts (limits.maxAttempts)"),
        ({"ttl": "forever"}, "spec.ttl: forever is not allowed (limits.maxTtl)"),
        ({"hold": True}, "spec.hold: true is not allowed (limits.maxTtl)"),
        ({"podPatch": {"spec": {"priorityClassName": "x"}}},
         "spec.podPatch: is not allowed (limits.allowPodPatch)"),
    ],
)  # fmt: skip
def test_what_a_limit_forbids_is_refused_with_the_limit(spec: dict[str, Any], line: str) -> None:
    spec = {"image": "alpine", **spec}
    assert told(LIMITS, **spec) == [line]
    config = make_config(f"limits: {LIMITS}")
    assert lines_of(load_document(document(**spec), config)), "a file says it, too"


def test_a_namespace_that_is_not_allowed_is_refused() -> None:
    job = document(image="alpine")
    job["metadata"]["namespace"] = "prod"
    line = "the namespace prod is not allowed (limits.allowedNamespaces)"
    assert refusals(admission_policies(LIMITS)[0], job) == [line]


@pytest.mark.parametrize("file", sorted(resource_dir("examples").rglob("*.yaml")), ids=str)
def test_no_policy_refuses_an_example(file: Any) -> None:
    for found in read_yaml(file.read_bytes(), str(file))[0]:
        if found.data.get("kind") in ("JobSpec", "JobDefaults"):
            assert refusals(DENY, found.data) == []


def test_the_value_of_a_secret_is_a_warning() -> None:
    (line,) = refusals(WARN, document(secrets={"A": {"value": "x"}}))
    assert "use fromSecret" in line
    assert refusals(WARN, document(secrets={"A": {"fromSecret": {"name": "a", "key": "k"}}})) == []


def test_defaults_without_a_spec_are_accepted_and_misspelt_ones_are_not() -> None:
    head = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobDefaults", "metadata": {"name": "d"}}
    assert refusals(admission_policies(LIMITS)[0], {**head, "metadata": {"namespace": "ci"}}) == []
    assert refusals(DENY, {**head, "sepc": {}}) == ['unknown field "sepc"']


@pytest.mark.parametrize("glob", ["a*", "a?c", "[ab]c", "[!a]x", "a.b", "a+b", "*/(x)", "^a$", ""])
@pytest.mark.parametrize("text", ["", "a", "abc", "ac", "bc", "bx", "ax", "a.b", "axb", "a+b",
                                  "r/(x)", "^a$"])  # fmt: skip
def test_a_glob_means_the_same_as_a_pattern(glob: str, text: str) -> None:
    assert bool(re.search(one_pattern([glob]), text)) == matches_any(text, (glob,))


def test_the_value_of_a_secret_is_refused_where_the_operator_says_so() -> None:
    limits = {"allowSecretValues": False}
    job = document(secrets={"A": {"value": "x"}})
    (policy, _) = admission_policies(limits)
    (line,) = refusals(policy, job)
    text = SpecText("jobspecs/ci/build", "", json.dumps(job).encode(), object=JobObject("uid", 1))
    said = load_texts([text], make_config(f"limits: {json.dumps(limits)}"), "ci")
    assert lines_of(said) == [
        f"jobspecs/ci/build: spec.secrets.A.value: {line} (limits.allowSecretValues: false)"
    ]
    assert load_texts([text], namespace="ci").jobs, "without the limit the engine takes it"
