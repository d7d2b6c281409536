from pathlib import Path

import pytest

from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: build}\n"
SPEC = HEAD + "spec:\n  image: alpine\n"


def test_valid_specs_are_counted(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document("a"))
    assert engine("validate", ".").stdout == "1 job, all valid\n"
    write(tmp_path, "b.yaml", document("b"))
    said = engine("validate", ".")
    assert (said.code, said.stdout, said.stderr) == (0, "2 jobs, all valid\n", "")


def test_every_problem_of_every_file_has_its_line(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", SPEC + "  imgae: x\n  timeout: 0\n")
    write(tmp_path, "b/b.yaml", "a: 1\na: 2\n")
    write(tmp_path, "c.yaml", document("c"))
    said = engine("validate", ".")
    assert said.code == 2
    assert said.stderr == ""
    assert said.stdout.splitlines() == [
        'a.yaml:6:3: unknown field "spec.imgae" (did you mean image?)',
        (
            "a.yaml:7:12: spec.timeout is 0, which would end the job at once "
            "(leave it out to get the default)"
        ),
        'b/b.yaml:2:1: duplicate key "a" (the first is at line 1; remove one)',
    ]


def test_a_warning_alone_is_no_error(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", SPEC + "  ttl: 1m\n")
    said = engine("validate", "a.yaml")
    assert said.code == 0
    warning, count = said.stdout.splitlines()
    assert warning.startswith("a.yaml:6:8: warning: spec.ttl 1m is shorter than")
    assert count == "1 job, all valid"


def test_two_specs_with_one_name_are_told_over_files(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document())
    write(tmp_path, "b.yaml", document())
    said = engine("validate", ".")
    assert said.code == 2
    assert said.stdout == (
        "a.yaml:1:1: another job is named build (the second is at b.yaml:1:1; rename one)\n"
        "b.yaml:1:1: a second job is named build (the first is at a.yaml:1:1; rename one)\n"
    )


def test_a_variable_that_is_not_set_is_a_warning(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", SPEC + "  secrets: {T: {fromEnv: ENGINE_SECRET_GONE}}\n")
    said = engine("validate", ".")
    assert said.code == 0
    assert said.stdout.startswith(
        "a.yaml:6:16: warning: fromEnv: the variable ENGINE_SECRET_GONE is not set"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../outside", "fromFile ../outside leads out of the spec's folder"),
        ("/etc/passwd", "fromFile /etc/passwd leads out of the spec's folder"),
        ("link", "fromFile: link leads out of the spec's folder"),
        ("missing", "fromFile: there is no file missing"),
    ],
)
def test_a_file_that_cant_be_used_is_an_error(
    tmp_path: Path, engine: Engine, name: str, words: str
) -> None:
    write(tmp_path, "outside", "hunter2")
    write(tmp_path, "specs/a.yaml", SPEC + f"  secrets: {{T: {{fromFile: {name}}}}}\n")
    (tmp_path / "specs/link").symlink_to("../outside")
    said = engine("validate", "specs")
    assert said.code == 2
    assert said.stdout.startswith("specs/a.yaml:6:")
    assert words in said.stdout
    assert "hunter2" not in said.stdout


def test_an_unknown_template_set_is_told_at_the_job(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", SPEC + "  template: nope\n")
    said = engine("validate", ".")
    assert said.code == 2
    assert said.stdout == "a.yaml:1:1: there is no template set nope (there are: job)\n"


def test_a_pod_patch_that_does_not_fit_is_told(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", SPEC + "  podPatch: {spec: {restartPolicy: Always}}\n")
    said = engine("validate", ".")
    assert said.code == 2
    assert said.stdout == (
        'a.yaml:6:36: spec.podPatch makes a pod in which spec.restartPolicy is "Always"'
        " (a job runs to completion: it has to be Never; spec.retry tries again)\n"
    )


def test_a_pod_patch_cant_bring_in_an_image_that_is_not_allowed(
    tmp_path: Path, engine: Engine
) -> None:
    write(
        tmp_path,
        "engine.yaml",
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {allowedImages: [alpine]}\n",
    )
    patch = "{spec: {containers: [{name: x, image: evil}]}}"
    write(tmp_path, "specs/a.yaml", SPEC + f"  podPatch: {patch}\n")
    said = engine("validate", "specs", "--config", "engine.yaml")
    assert said.code == 2
    assert said.stdout == (
        "specs/a.yaml:6:51: the pod's spec.containers{x}.image evil is not allowed "
        "(limits.allowedImages: alpine)\n"
    )


def test_a_spec_cant_leave_the_limits_by_its_pod_patch(tmp_path: Path, engine: Engine) -> None:
    """One spec with every way round the limits: each is told, and nothing of it would be sent."""
    limits = (
        "{maxTimeout: 10m, maxGracePeriod: 1m, allowedPullPolicies: [Always], "
        "allowedImages: [alpine], allowedServiceAccounts: []}"
    )
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    write(tmp_path, "engine.yaml", f"{head}limits: {limits}\n")
    patch = (
        "  podPatch:\n"
        "    spec:\n"
        "      serviceAccount: engine\n"
        "      terminationGracePeriodSeconds: 31536000\n"
        "      containers: [{name: main, imagePullPolicy: Never}]\n"
        "      volumes:\n"
        "        - {name: a, image: {reference: evil.example/miner}}\n"
    )
    write(tmp_path, "specs/a.yaml", SPEC + patch)
    said = engine("validate", "specs", "--config", "engine.yaml")
    assert said.code == 2
    told = [line.partition(": ")[2].partition(" (")[0] for line in said.stdout.splitlines()]
    assert told == [
        "the pod's spec.serviceAccount engine is not allowed",
        "the pod's spec.terminationGracePeriodSeconds 365d is longer than 1m",
        "the pod's spec.containers{main}.imagePullPolicy Never is not allowed",
        "the pod's spec.volumes{a}.image.reference evil.example/miner is not allowed",
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "not valid YAML"),
        ("kind: EngineConfig\n", "apiVersion is missing"),
        (None, "can't be read: No such file or directory"),
    ],
)
def test_a_config_that_cant_be_used_stops_everything(
    tmp_path: Path, engine: Engine, content: str | None, words: str
) -> None:
    write(tmp_path, "specs/a.yaml", document())
    if content is not None:
        write(tmp_path, "engine.yaml", content)
    said = engine("validate", "specs", "--config", "engine.yaml")
    assert said.code == 2
    assert said.stdout == ""
    assert said.stderr.startswith("engine.yaml")
    assert words in said.stderr


def test_settings_can_come_from_variables(tmp_path: Path, engine: Engine) -> None:
    write(
        tmp_path,
        "engine.yaml",
        "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {allowedNamespaces: [a]}\n",
    )
    write(tmp_path, "specs/a.yaml", document())
    env = {"ENGINE_CONFIG": "engine.yaml", "ENGINE_NAMESPACE": "b"}
    said = engine("validate", "specs", env=env)
    assert "the namespace b is not allowed" in said.stdout


def test_paths_can_be_given_as_in_kubectl(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document("a"))
    write(tmp_path, "b.yaml", document("b"))
    assert engine("validate", "-f", "a.yaml", "-f", "b.yaml").stdout == "2 jobs, all valid\n"


def test_no_path_is_a_mistake(engine: Engine) -> None:
    said = engine("validate")
    assert said.code == 2
    assert "name at least one file or folder" in said.stderr


def test_a_path_that_is_not_there_is_told(engine: Engine) -> None:
    said = engine("validate", "nope.yaml")
    assert (said.code, said.stderr) == (2, "error: nope.yaml: no such file or folder\n")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(
            f"c{n}: &c{n} [{', '.join([f'*c{n - 1}' if n else '*b'] * 9)}]\n" for n in range(7)
        ),
        "[" * 500_000,
        "x" * 10_000_000,
        "a:\n\tb: 1\n",
        "\x00",
        'a: "\\ud800"',
        'a: "\\0"',
        f"podPatch: {{spec: {{x: 0x{'f' * 4000}}}}}",
        f"timeout: 0o{'7' * 4000}",
        "a: {b: c:d, e: " + "1" * 5000 + "}",
        "a: {b: c:d, e: 2020-01-01}",
        "a: !!python/object/apply:os.system [id]",
    ],
)  # fmt: skip
def test_hostile_files_are_one_line_and_exit_code_2(
    tmp_path: Path, engine: Engine, text: str
) -> None:
    write(tmp_path, "a.yaml", text)
    said = engine("validate", "a.yaml")
    assert said.code == 2
    (line,) = said.stdout.splitlines()
    assert line.startswith("a.yaml")


def test_a_secret_too_short_to_be_masked_is_a_warning_that_does_not_quote_it(
    tmp_path: Path, engine: Engine
) -> None:
    secrets = {"PIN": {"value": "q7x"}, "KEY": {"value": "q7xy"}, "NONE": {"value": ""}}
    password = {"fromEnv": "ENGINE_SECRET_PASSWORD"}
    login = {"registry": "registry.example", "username": "ci", "password": password}
    write(tmp_path, "a.yaml", document(secrets=secrets, registryCredentials=[login]))
    said = engine("validate", "a.yaml", env={"ENGINE_SECRET_PASSWORD": " z9\n"})
    assert said.code == 0
    words = "warning: a secret of fewer than 4 characters isn't masked in messages and logs"
    *warnings, last = said.stdout.splitlines()
    assert [line.split(": ", 1)[1] for line in warnings] == [words, words]
    assert last == "1 job, all valid"
    assert "q7x" not in said.stdout
    assert "z9" not in said.stdout


def stumble(*_: object, **__: object) -> None:
    raise RuntimeError("hunter2")


@pytest.mark.parametrize("command", ["validate", "render", "reconcile --once"])
def test_what_the_engine_itself_stumbles_over_names_the_file_and_tells_of_the_others(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write(tmp_path, "a.yaml", document("a"))
    write(tmp_path, "b.yaml", "kind: JobSpec\n")
    monkeypatch.setattr("engine.specdir.compile.build_job", stumble)
    said = engine(*command.split(), ".")
    assert said.code == 2
    first, second = (said.stdout + said.stderr).splitlines()
    assert first.startswith("a.yaml: internal error: RuntimeError at test_validate.py:")
    assert second.startswith("b.yaml:1:1: apiVersion is missing")


@pytest.mark.parametrize("command", ["validate", "render"])
def test_so_it_does_for_what_comes_up_while_rendering(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    write(tmp_path, "a.yaml", document("a", podPatch={"spec": {"hostname": "a"}}))
    monkeypatch.setattr("engine.lifecycle.attempt.render_job", stumble)
    said = engine(command, ".")
    assert said.code == 2
    (line,) = (said.stdout + said.stderr).splitlines()
    assert line.startswith("a.yaml: internal error: RuntimeError at test_validate.py:")


def test_json_has_the_jobs_that_are_valid_and_every_problem(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", SPEC)
    write(tmp_path, "b.yaml", SPEC.replace("build", "other") + "  timeout: 0\n")
    said = engine("validate", ".", "-o", "json", "-n", "ci")
    assert said.code == 2
    assert said.result["jobs"] == [
        {"name": "build", "namespace": "ci", "file": "a.yaml", "line": 1}
    ]
    (problem,) = said.result["problems"]
    assert (problem["file"], problem["line"], problem["severity"]) == ("b.yaml", 6, "error")
    assert problem["message"].startswith("spec.timeout is 0")


@pytest.mark.parametrize(("value", "is_json"), [("json", True), ("", False)])
def test_the_environment_may_name_the_format(
    tmp_path: Path, engine: Engine, value: str, is_json: bool
) -> None:
    write(tmp_path, "a.yaml", SPEC)
    said = engine("validate", ".", env={"ENGINE_OUTPUT": value})
    assert said.code == 0
    assert said.stdout.startswith("{") == is_json


@pytest.mark.parametrize("name", ["secret", "configmap"])
def test_what_ones_own_templates_make_beside_the_pod_is_checked_too(
    tmp_path: Path, engine: Engine, name: str
) -> None:
    secrets = {"T": {"fromEnv": "ENGINE_SECRET_A"}}
    write(tmp_path, "jobs/a.yaml", document(secrets=secrets, podPatch={"spec": {"hostname": "a"}}))
    write(tmp_path, f"own/job/{name}.yaml.j2", "apiVersion: v1\nkind: Pod\n")
    said = engine("validate", "jobs", "--templates", "own")
    assert said.code == 2
    assert f"{name}.yaml.j2 must make a v1 " in said.stdout + said.stderr
