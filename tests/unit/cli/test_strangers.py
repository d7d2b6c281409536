"""What whoever writes specs can't do to whoever runs the command."""

import os
from pathlib import Path

import pytest

from tests.unit.builders import write
from tests.unit.cli.conftest import Engine
from tests.unit.cli.test_validate import SPEC

CONFIG_HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"


def spec_with(source: str, where: str) -> str:
    """A spec, or JobDefaults and a spec, with one secret from `source`."""
    login = f"  registryCredentials: [{{registry: r, username: u, password: {source}}}]\n"
    secret = f"  secrets:\n    T: {source}\n"
    match where:
        case "registryCredentials":
            return SPEC + login
        case "JobDefaults":
            return (
                f"apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec:\n{secret}---\n{SPEC}"
            )
    return SPEC + secret


@pytest.mark.parametrize("where", ["secrets", "registryCredentials", "JobDefaults"])
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("fromEnv: KEY", ("fromEnv: the variable KEY is not allowed (limits.allowedSecretEnv: "
         "ENGINE_SECRET_*; --allow-secret-env KEY adds it; renaming the variable in the spec is a "
         "change of the spec, which runs the job again)")),
        ("fromFile: .git/config", ("fromFile .git/config is hidden, and hidden files are not for "
         "specs (no part of the path may begin with a dot)")),
        ("fromFile: sub/.env", ("fromFile sub/.env is hidden, and hidden files are not for specs "
         "(no part of the path may begin with a dot)")),
        ("fromFile: ../outside", ("fromFile ../outside leads out of the spec's folder "
         "(give a path below the folder that the spec is in)")),
    ],
)  # fmt: skip
def test_a_spec_cant_have_or_even_see_secrets_that_are_not_meant_for_it(
    tmp_path: Path, engine: Engine, where: str, source: str, words: str
) -> None:
    text = spec_with(f"{{{source}}}", where)
    write(tmp_path, "specs/a.yaml", text)
    (number,) = [n for n, line in enumerate(text.splitlines(), 1) if source in line]
    column = text.splitlines()[number - 1].index(source.split()[1]) + 1
    verdict = f"specs/a.yaml:{number}:{column}: {words}\n"
    for command in (["validate"], ["render"], ["render", "--show-secrets"]):
        said = engine(*command, "specs")
        assert (said.code, said.stdout + said.stderr) == (2, verdict)
    for name in ("specs/.git/config", "specs/sub/.env", "outside"):
        write(tmp_path, name, "hunter2")
    said = engine("validate", "specs", env={"KEY": "hunter2"})
    assert (said.code, said.stdout) == (2, verdict)


@pytest.mark.parametrize(
    ("name", "text", "flags", "code"),
    [
        ("ENGINE_SECRET_A", "", [], 0),
        ("ENGINE_SECRET", "", [], 2),
        ("XENGINE_SECRET_A", "", [], 2),
        ("engine_secret_a", "", [], 2),
        ("ENGINE_SECRET_A", "limits: {allowedSecretEnv: []}", [], 2),
        ("ENGINE_SECRET_A", "limits: {allowedSecretEnv: ['CI_*']}", [], 2),
        ("CI_A", "limits: {allowedSecretEnv: ['CI_*']}", [], 0),
        ("CI_A", "", ["--allow-secret-env", "CI_*"], 0),
        ("CI_A", "", ["--allow-secret-env", "X", "--allow-secret-env", "CI_A"], 0),
        ("ENGINE_SECRET_A", "", ["--allow-secret-env", "CI_*"], 0),
        ("CI_A", "limits: {allowedSecretEnv: []}", ["--allow-secret-env", "CI_*"], 0),
    ],
)
def test_only_variables_that_the_operator_names_are_allowed(
    tmp_path: Path, engine: Engine, name: str, text: str, flags: list[str], code: int
) -> None:
    write(tmp_path, "specs/a.yaml", SPEC + f"  secrets: {{T: {{fromEnv: {name}}}}}\n")
    write(tmp_path, "engine.yaml", f"{CONFIG_HEAD}{text}\n")
    given = ["--config", "engine.yaml"] if text else []
    assert engine("validate", "specs", *given, *flags).code == code


def test_the_variable_of_the_flag_takes_several_globs(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", SPEC + "  secrets: {T: {fromEnv: CI_A}, U: {fromEnv: B}}\n")
    assert engine("validate", ".", env={"ENGINE_ALLOW_SECRET_ENV": "CI_* B"}).code == 0


def test_files_can_be_kept_from_specs_altogether(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "specs/a.yaml", SPEC + "  secrets: {T: {fromFile: token}}\n")
    config = write(tmp_path, "engine.yaml", CONFIG_HEAD + "limits: {allowSecretFiles: false}\n")
    for _ in range(2):
        said = engine("validate", "specs", "--config", config)
        assert (said.code, said.stdout) == (
            2,
            (
                "specs/a.yaml:6:27: fromFile: the file token is not allowed "
                "(limits.allowSecretFiles: false)\n"
            ),
        )
        write(tmp_path, "specs/token", "x")
    assert engine("validate", "specs").code == 0


@pytest.mark.parametrize(
    "command", [["validate"], ["render"], ["reconcile", "--once", "--sandbox"]]
)
@pytest.mark.parametrize("what", ["specs", "config", "template"])
def test_no_pipe_is_waited_for(
    tmp_path: Path, process: Engine, command: list[str], what: str
) -> None:
    write(tmp_path, "specs/a.yaml", SPEC.replace("spec:", "spec:\n  template: own"))
    (tmp_path / "own/own").mkdir(parents=True)
    write(tmp_path, "engine.yaml", CONFIG_HEAD)
    names = {"specs": "specs/z.yaml", "config": "engine.yaml", "template": "own/own/pod.yaml.j2"}
    place = tmp_path / names[what]
    place.unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe")
    place.symlink_to(tmp_path / "pipe")
    said = process(*command, "specs", "--config", "engine.yaml", "--templates", "own")
    assert said.code == 2
    words = "has no own/pod.yaml.j2" if what == "template" else "this is not a file"
    assert words in said.stdout + said.stderr
