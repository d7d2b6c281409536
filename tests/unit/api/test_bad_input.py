"""Bad specs: one line each, with the place, and nothing of the set is used."""

import json
from typing import Any

import pytest

from engine.api.config import parse_config
from engine.errors import InvalidInputError
from tests.unit.builders import document, lines_of, load, load_document, make_config, make_job

HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: build}\n"
SPEC = HEAD + "spec:\n  image: alpine\n"


def lines(text: str) -> list[str]:
    return lines_of(load(text))


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("  imgae: x",
         'job.yaml:6:3: unknown field "spec.imgae" (did you mean image?)'),
        ("  env: {A: 1}",
         'job.yaml:6:12: spec.env.A must be a string, not the number 1 (quote it: "1")'),
        ("  env: {A: true}",
         'job.yaml:6:12: spec.env.A must be a string, not true or false (quote it: "true")'),
        ("  env: {A: 1.10}",
         'job.yaml:6:12: spec.env.A must be a string, not the number 1.1 (quote it: "1.10")'),
        ("  env:\n    A: 0x1F # hex",
         'job.yaml:7:8: spec.env.A must be a string, not the number 31 (quote it: "0x1F")'),
        ("  env: [A]",
         'job.yaml:6:8: spec.env must be a mapping, not a list (such as {"LEVEL": "debug"})'),
        ("  script:", "job.yaml:6:10: spec.script must be a string, not empty"),
        ('  script: ""', "job.yaml:6:11: spec.script is empty"),
        ("  timeout: 0", ("job.yaml:6:12: spec.timeout is 0, which would end the job at once "
         "(leave it out to get the default)")),
        ("  timeout: 0s", ("job.yaml:6:12: spec.timeout is 0, which would end the job at once "
         "(leave it out to get the default)")),
        ("  timeout: 2147483648", ("job.yaml:6:12: spec.timeout: 2147483648 is longer than "
         "a pod's activeDeadlineSeconds can be (at most 2147483647 seconds)")),
        ("  timeout: 2147483647.5s", ("job.yaml:6:12: spec.timeout: 2147483647.5s is longer than "
         "a pod's activeDeadlineSeconds can be (at most 2147483647 seconds)")),
        (f"  timeout: 2147483648.{'0' * 90}s",
         (f"job.yaml:6:12: spec.timeout: 2147483648.{'0' * 48}… is longer than "
         "a pod's activeDeadlineSeconds can be (at most 2147483647 seconds)")),
        ("  timeout: -1", ("job.yaml:6:12: spec.timeout must be at least 0, not -1 "
         "(use seconds, such as 11700, or units, such as 90s, 3h15m, 7d or 1w)")),
        ("  timeout: soon", ('job.yaml:6:12: spec.timeout: "soon" is not valid '
         "(use seconds, such as 11700, or units, such as 90s, 3h15m, 7d or 1w)")),
        ("  timeout: 1.5",
         ("job.yaml:6:12: spec.timeout must be a string or a whole number, not the number 1.5 "
         '(quote it: "1.5")')),
        ("  pullPolicy: always", ('job.yaml:6:15: spec.pullPolicy: "always" is not allowed '
         "(did you mean Always?)")),
        ("  pullPolicy: []", "job.yaml:6:15: spec.pullPolicy is empty"),
        ("  pullPolicy: [Always, Nevr]",
         'job.yaml:6:24: spec.pullPolicy[1]: "Nevr" is not allowed (did you mean Never?)'),
        ("  script: x\n  command: [y]", ("job.yaml:7:3: spec has both script and command "
         "(a script is run by sh -e; keep one of them)")),
        ("  env: {1A: x}", ('job.yaml:6:9: spec.env: "1A" is not a valid name (an environment '
         "variable is named with letters, digits, _, - and ., starting with a letter or _)")),
        ("  files: {/etc/passwd: x}", ('job.yaml:6:11: spec.files: "/etc/passwd" is not a valid '
         "name (a relative path without '.', '..' or a leading or trailing '/')")),
        ("  files: {a/../b: x}", ('job.yaml:6:11: spec.files: "a/../b" is not a valid '
         "name (a relative path without '.', '..' or a leading or trailing '/')")),
        ("  files: {a: x, a/b: y}", ("job.yaml:6:17: spec.files: a/b is below a, which is a file "
         "(rename one of them)")),
        ("  secrets: {T: {}}", ("job.yaml:6:16: spec.secrets.T is empty "
         "(exactly one of: fromEnv, fromFile, fromSecret, value)")),
        ("  secrets: {T: {value: a, fromEnv: B}}", ("job.yaml:6:16: spec.secrets.T has 2 entries, "
         "at most 1 may be set (exactly one of: fromEnv, fromFile, fromSecret, value)")),
        ("  secrets: {T: {fromSecret: ci}}", ("job.yaml:6:29: spec.secrets.T.fromSecret must be a "
         "mapping (a secret is {value: ...}, {fromEnv: NAME}, {fromFile: PATH} or {fromSecret: "
         "{name: NAME, key: KEY}}, a value in quotes)")),
        ("  secrets: {T: {fromSecret: {name: ci}}}",
         "job.yaml:6:29: spec.secrets.T.fromSecret.key is missing"),
        ("  registryCredentials: [{registry: r, fromSecret: {name: ci}}]",
         ("job.yaml:6:25: spec.registryCredentials[0] has 2 entries, at most 1 may be set "
          "(fromSecret stands alone: the Secret has registry, username and password)")),
        ("  registryCredentials: [{fromSecret: {name: Ci}}]",
         ("job.yaml:6:45: spec.registryCredentials[0].fromSecret.name: this is not valid (lower "
          "case letters, digits, '-' and '.', starting and ending with a letter or digit)")),
        ("  registryCredentials: [{registry: r, username: u}]",
         "job.yaml:6:25: spec.registryCredentials[0].password is missing"),
        ("  registryCredentials: [{registry: r, username: u, password: {fromSecret: {name: x}}}]",
         ("job.yaml:6:63: unknown field in spec.registryCredentials[0].password "
          "(one of: fromEnv, fromFile, value)")),
        ("  secrets: {T: {fromFile: ../x}}", ("job.yaml:6:27: fromFile ../x leads out of the "
         "spec's folder (give a path below the folder that the spec is in)")),
        ("  secrets: {T: {fromFile: /etc/shadow}}", ("job.yaml:6:27: fromFile /etc/shadow leads "
         "out of the spec's folder (give a path below the folder that the spec is in)")),
        ("  services: [{name: redis}]", "job.yaml:6:14: spec.services[0].image is missing"),
        ("  services: [{name: main, image: x}]", ("job.yaml:6:21: two containers are named main "
         "(the job's own container is named main)")),
        ("  services: [{name: a, image: x}, {name: a, image: y}]",
         "job.yaml:6:42: two containers are named a (the job's own container is named main)"),
        ("  services: [{name: a, image: x, secrets: [T]}]", ("job.yaml:6:44: "
         "spec.services[0].secrets: the job has no secret T (spec.secrets has: none)")),
        ("  services: [{name: a, image: x, ports: [0]}]",
         "job.yaml:6:42: spec.services[0].ports[0] must be at least 1, not 0"),
        ("  resources: {limits: {memory: lots}}", ('job.yaml:6:32: spec.resources.limits.memory: '
         '"lots" is not valid (a quantity is a number with an optional unit: '
         "100m, 0.5, 256Mi, 2G)")),
        ("  onChange: Restart", ('job.yaml:6:13: spec.onChange: "Restart" is not allowed '
         "(one of: Replace, Wait)")),
        ("  retry: {max: 11}", "job.yaml:6:16: spec.retry.max must be at most 10, not 11"),
        ("  retry: {on: [Evicted, Evicted]}", "job.yaml:6:15: spec.retry.on names something twice"),
        ('  env: {A: "a\\0b"}', "job.yaml:6:12: a NUL character (no process can be given one)"),
        ('  env: {A: !!str "a\\0b"}', ("job.yaml:6:12: a NUL character "
         "(no process can be given one)")),
    ],
)  # fmt: skip
def test_a_bad_field_has_one_line_at_its_place(written: str, line: str) -> None:
    loaded = load(f"{SPEC}{written}\n")
    assert lines_of(loaded) == [line]
    assert loaded.jobs == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a\n", ("job.yaml:1:1: a job spec is a mapping, not a list (start with "
         "'apiVersion: jobs.engine/v1alpha1' and 'kind: JobSpec')")),
        ("hello\n", ("job.yaml:1:1: a job spec is a mapping, not a string (start with "
         "'apiVersion: jobs.engine/v1alpha1' and 'kind: JobSpec')")),
        ("kind: JobSpec\n", "job.yaml:1:1: apiVersion is missing (one of: jobs.engine/v1alpha1)"),
        ("apiVersion: jobs.engine/v1\nkind: JobSpec\n", ('job.yaml:1:13: apiVersion '
         '"jobs.engine/v1" is not one that the engine knows (did you mean jobs.engine/v1alpha1?)')),
        ("apiVersion: jobs.engine/v1alpha1\n",
         "job.yaml:1:1: kind is missing (one of: EngineConfig, JobDefaults, JobSpec)"),
        ("apiVersion: jobs.engine/v1alpha1\nkind: Jobspec\n", ('job.yaml:2:7: kind "Jobspec" is '
         "not one that the engine knows (did you mean JobSpec?)")),
        ("apiVersion: [a]\nkind: JobSpec\n", ('job.yaml:1:13: apiVersion ["a"] is not one that '
         "the engine knows (one of: jobs.engine/v1alpha1)")),
        ("apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nspec: {image: x}\n",
         "job.yaml:1:1: metadata is missing"),
        (HEAD, "job.yaml:1:1: spec is missing"),
        (HEAD + "spec:\n", "job.yaml:4:6: spec must be a mapping, not empty"),
        (HEAD + "spec: {}\n", ("job.yaml:4:7: spec.image is missing "
         "(set it here or in a JobDefaults)")),
        (SPEC.replace("build", "Build"), ('job.yaml:3:18: metadata.name: "Build" is not valid '
         "(lower case letters, digits and '-', starting and ending with a letter or digit)")),
        (SPEC.replace("build", '"build\\n"'), ('job.yaml:3:18: metadata.name: "build\\n" is not '
         "valid (lower case letters, digits and '-', starting and ending with a letter or digit)")),
        (SPEC.replace("{name: build}", "{name: build, labels: {jobs.engine/job: x}}"),
         ("job.yaml:3:34: metadata.labels: jobs.engine/job is the engine's own "
         "(choose another key)")),
        (SPEC.replace("{name: build}", "{name: build, labels: {a: x y}}"),
         ('job.yaml:3:37: metadata.labels.a: "x y" is not valid '
         "(a label's value has at most 63 letters, digits, '-', '_' and '.')")),
    ],
)  # fmt: skip
def test_a_bad_document_has_one_line_at_its_place(text: str, line: str) -> None:
    assert lines(text) == [line]


def test_a_name_of_48_characters_fits_and_one_of_49_does_not() -> None:
    assert make_job("b" * 48).name == "b" * 48
    (line,) = lines_of(load_document(document("b" * 49)))
    assert "metadata.name has 49 characters, at most 48 fit" in line


def test_every_error_of_a_file_is_told_in_the_files_order() -> None:
    text = SPEC + "  imgae: x\n  env: {A: 1}\n  timeout: 0\n---\n" + SPEC + "  onChange: x\n"
    found = lines(text)
    assert [line.split(": ")[0] for line in found] == [
        "job.yaml:6:3", "job.yaml:7:12", "job.yaml:8:12", "job.yaml:15:13",
    ]  # fmt: skip


def test_rules_are_checked_even_where_a_field_is_unknown() -> None:
    found = lines(SPEC + "  imgae: x\n  timeout: 0\n")
    assert len(found) == 2


def test_two_jobs_of_one_name_are_told_with_both_places() -> None:
    loaded = load(f"{SPEC}---\n{SPEC}")
    assert lines_of(loaded) == [
        "job.yaml:7:1: a second job is named build (the first is at job.yaml:1:1; rename one)"
    ]


def test_one_name_in_two_namespaces_is_two_jobs() -> None:
    other = SPEC.replace("{name: build}", "{name: build, namespace: other}")
    assert [str(job.key) for job in load(f"{SPEC}---\n{other}").jobs] == ["ci/build", "other/build"]


def test_a_variable_that_is_also_a_secret_of_the_same_container_is_told() -> None:
    redis = "{name: redis, image: x, env: {T: a}, secrets: [T]}"
    (line,) = lines(
        SPEC + f"  secrets: {{T: {{fromEnv: ENGINE_SECRET_A}}}}\n  services: [{redis}]\n"
    )
    assert "T is both in spec.services[0].env and in its secrets" in line


def test_the_main_containers_variable_may_not_be_its_secret_as_well() -> None:
    (line,) = lines(SPEC + "  env: {T: x}\n  secrets: {T: {fromEnv: ENGINE_SECRET_A}}\n")
    assert "job.yaml:6:9: T is both in spec.env and in" in line


def test_a_ttl_that_may_end_before_the_job_is_a_warning() -> None:
    loaded = load(SPEC + "  timeout: 1h\n  startTimeout: 10m\n  ttl: 1h\n")
    assert lines_of(loaded) == [
        (
            "job.yaml:8:8: warning: spec.ttl 1h is shorter than startTimeout + timeout (1h10m): "
            "a running job may be pruned (raise ttl, or leave it out)"
        )
    ]
    assert [job.ttl for job in loaded.jobs] == [3600]


# The operator's limits

LIMITS = {
    "policies": "limits: {allowedPullPolicies: [IfNotPresent, Never]}",
    "images": "limits: {allowedImages: ['registry.example/*']}",
    "namespaces": "limits: {allowedNamespaces: ['ci-*']}",
    "timeout": "limits: {maxTimeout: 30m}",
}


def test_a_policy_list_without_an_allowed_one_names_both_lists() -> None:
    spec = document(pullPolicy=["Always"])
    (line,) = lines_of(load_document(spec, make_config(LIMITS["policies"])))
    assert "spec.pullPolicy [Always] has none of the allowed [IfNotPresent, Never]" in line
    assert "limits.allowedPullPolicies" in line


def test_a_policy_list_is_filtered_and_keeps_its_order() -> None:
    config = make_config(LIMITS["policies"])
    job = make_job(config=config, pullPolicy=["Never", "Always", "IfNotPresent", "Never"])
    assert job.policies == {"main": ("Never", "IfNotPresent", "Never")}


def test_a_services_policies_are_limited_too() -> None:
    spec = document(services=[{"name": "db", "image": "x", "pullPolicy": "Always"}])
    (line,) = lines_of(load_document(spec, make_config(LIMITS["policies"])))
    assert "spec.services[0].pullPolicy [Always]" in line


@pytest.mark.parametrize(
    "spec",
    [
        {"image": "alpine"},
        {"services": [{"name": "db", "image": "alpine"}]},
        {"initContainers": [{"name": "db", "image": "alpine"}]},
    ],
)
def test_an_image_that_is_not_allowed_is_told_wherever_it_stands(spec: dict[str, Any]) -> None:
    (line,) = lines_of(load_document(document(**spec), make_config(LIMITS["images"])))
    assert ".image alpine is not allowed (limits.allowedImages: registry.example/*)" in line


def test_a_namespace_that_is_not_allowed_is_told() -> None:
    config = make_config(LIMITS["namespaces"])
    assert make_job(config=config, namespace="ci-1").namespace == "ci-1"
    (line,) = lines_of(load_document(document(), config, "prod"))
    assert "the namespace prod is not allowed (limits.allowedNamespaces: ci-*)" in line


def test_a_timeout_above_the_cap_is_cut_with_a_warning() -> None:
    loaded = load_document(document(timeout="1h"), make_config(LIMITS["timeout"]))
    (line,) = lines_of(loaded)
    assert "warning: spec.timeout 1h is cut to 30m (limits.maxTimeout)" in line
    assert loaded.jobs[0].timeout == 1800


def test_the_default_timeout_is_cut_without_a_word() -> None:
    loaded = load_document(document(), make_config(LIMITS["timeout"]))
    assert lines_of(loaded) == []
    assert loaded.jobs[0].timeout == 1800


# EngineConfig itself


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("limit: {}", 'engine.yaml:3:1: unknown field "limit" (did you mean limits?)'),
        ("limits: {maxTimeout: soon}", 'engine.yaml:3:22: limits.maxTimeout: "soon" is not valid'),
        ("limits: {maxTimeout: 0}", ("engine.yaml:3:22: limits.maxTimeout is 0, which leaves a job "
         "no time (leave it out)")),
        ("limits: {maxTimeout: 99999w}",
         "engine.yaml:3:22: limits.maxTimeout: '99999w' is longer than a hundred years"),
        ("defaults: {timeout: 0}", "engine.yaml:3:21: defaults.timeout is 0"),
        ("defaults: {ttlLeeway: 99999w}",
         "engine.yaml:3:23: defaults.ttlLeeway: '99999w' is longer"),
        ("pull: {patience: 99999w}", "engine.yaml:3:18: pull.patience: '99999w' is longer"),
        ("pull: {fallbackOn: [all]}",
         'engine.yaml:3:21: pull.fallbackOn[0]: "all" is not allowed'),
        ("limits: {allowedPullPolicies: []}",
         "engine.yaml:3:31: limits.allowedPullPolicies is empty"),
        ("limits: []", "engine.yaml:3:9: limits must be a mapping, not a list"),
        ("features: {activeDeadlineSeconds: 'no'}",
         "engine.yaml:3:35: features.activeDeadlineSeconds must be true or false, not a string"),
        ("a: 1\na: 2", "engine.yaml:4:1: duplicate key"),
        ("---\nkind: JobSpec\napiVersion: jobs.engine/v1alpha1\n", "engine.yaml:4:1: metadata is"),
    ],
)  # fmt: skip
def test_a_broken_config_is_told_at_its_place(text: str, line: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        make_config(text)
    assert str(error.value.problems[0]).startswith(line)


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_config_holds_nothing(text: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_config(text.encode(), "engine.yaml")
    assert str(error.value) == "engine.yaml: this must hold one EngineConfig, but holds nothing"


def test_a_spec_given_as_config_is_told() -> None:
    with pytest.raises(InvalidInputError, match="one EngineConfig, but holds JobSpec"):
        parse_config(json.dumps(document()).encode(), "engine.yaml")


def test_a_config_among_the_specs_is_a_warning() -> None:
    loaded = load("apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n---\n" + SPEC)
    assert lines_of(loaded) == [
        (
            "job.yaml:1:1: warning: an EngineConfig among the specs has no effect "
            "(it is the operator's: give it with --config)"
        )
    ]
    assert len(loaded.jobs) == 1


# Secrets

VALUE = "hunter2-31337"


@pytest.mark.parametrize(
    "written",
    [
        f"secrets: {VALUE}",
        f"secrets: [{VALUE}]",
        f"secrets: {{T: {VALUE}}}",
        f"secrets: {{T: [{VALUE}]}}",
        f"secrets: {{T: {{value: [{VALUE}]}}}}",
        f"secrets: {{T: {{value: {{{VALUE}: 1}}}}}}",
        f"secrets: {{T: {{{VALUE}}}}}",
        f"secrets: {{T: {{{VALUE}: x, {VALUE}: y}}}}",
        f"secrets: {{T: {{value: x, {VALUE}: y}}}}",
        f"secrets: {{{VALUE}}}",
        f"secrets: {{{VALUE}, {VALUE}}}",
        f'secrets: {{"{VALUE}!": x}}',
        "secrets: {T: {3133731337}}",
        f"secrets: {{T: {{valeu: {VALUE}}}}}",
        f"secrets: {{T: {{value: {VALUE}, fromEnv: X}}}}",
        f"secrets: {{T: {{value: *{VALUE}}}}}",
        f"secrets: {{T: {{value: !{VALUE} x}}}}",
        f"secrets: {{T: {{value: @{VALUE}}}}}",
        f'secrets: {{T: {{value: "{VALUE}\\0"}}}}',
        "secrets: {T: 3133731337}",
        "secrets: {T: {value: 3133731337}}",
        "secrets: {T: {fromEnv: 3133731337}}",
        "secrets: {T: [3133731337]}",
        "secrets: 3133731337",
        f"registryCredentials: [{{registry: r, username: u, password: {VALUE}}}]",
        "registryCredentials: [{registry: r, username: u, password: 3133731337}]",
        "registryCredentials: [{registry: r, username: u, password: {value: 3133731337}}]",
        "registryCredentials: 3133731337",
        f"secrets: {{T: {{fromSecret: {VALUE}}}}}",
        f"secrets: {{T: {{fromSecret: {{name: _{VALUE}, key: '{VALUE}!'}}}}}}",
        f"secrets: {{T: {{fromSecret: {{name: x, key: k, {VALUE}: 1}}}}}}",
        f"registryCredentials: [{{fromSecret: {{name: _{VALUE}}}}}]",
        f"registryCredentials: [{{fromSecret: {VALUE}}}]",
        f"registryCredentials: [{VALUE}]",
        f"registryCredentials: [{{{VALUE}}}]",
        f"registryCredentials: [{{registry: r, username: u, password: {{{VALUE}}}}}]",
        f"registryCredentials: [{{registry: r, {VALUE}: 1, {VALUE}: 2}}]",
    ],
)
def test_no_message_repeats_what_may_be_a_secret(written: str) -> None:
    found = lines(f"{SPEC}  {written}\n")
    assert found
    assert not [line for line in found if "hunter2" in line or "31337" in line]


def test_a_secret_is_not_in_what_a_job_prints_as() -> None:
    login = {"registry": "r", "username": "u", "password": {"value": VALUE}}
    job = make_job(secrets={"T": {"value": VALUE}}, registryCredentials=[login])
    assert VALUE not in repr(job)
    assert job.secrets[0].text == VALUE


def test_no_two_volumes_have_one_name_or_one_place() -> None:
    volumes = [
        {"name": "cache", "emptyDir": {}, "mountPath": "/cache"},
        {"name": "cache", "persistentVolumeClaim": "c", "mountPath": "/other"},
        {"name": "tools", "image": "tools:1", "mountPath": "/cache/"},
        {"name": "engine-config", "emptyDir": {}, "mountPath": "/engine"},
    ]
    told = [str(one) for one in load_document(document(volumes=volumes)).problems]
    assert [words.partition("spec.volumes")[2].partition(":")[0] for words in told] == [
        "[1].name", "[2].mountPath", "[3].name", "[3].mountPath",
    ]  # fmt: skip
