"""What whoever writes specs can't do to whoever runs the command."""

import os
import re
from pathlib import Path

import pytest

from tests.support.engine import CommandResult
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
    for command in (["validate"], ["render"]):
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


DEFAULTS = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec: {timeout: 7m}\n"


def timeout_of(said: CommandResult) -> int:
    assert said.code == 0, said.stderr
    (found,) = re.findall(r"activeDeadlineSeconds: (\d+)", said.stdout)
    return int(found)


@pytest.mark.parametrize("named", ["web/jobs", "web/jobs/a.yaml"])
def test_the_same_file_is_the_same_job_wherever_one_stands(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    write(tmp_path, "web/zz.yaml", DEFAULTS)
    write(tmp_path, "web/jobs/a.yaml", SPEC)
    path = tmp_path / named
    for folder in ("/", tmp_path, tmp_path / "web", tmp_path / "web/jobs"):
        monkeypatch.chdir(folder)
        assert timeout_of(engine("render", path, "--defaults-root", tmp_path / "web")) == 420
        assert timeout_of(engine("render", path, "--defaults-root", tmp_path / "web/jobs")) == 3600
        assert timeout_of(engine("render", path)) == 3600


def test_defaults_that_a_named_path_covers_count_for_what_is_named_below_it(
    tmp_path: Path, engine: Engine
) -> None:
    write(tmp_path, "web/zz.yaml", DEFAULTS)
    write(tmp_path, "web/jobs/a.yaml", SPEC)
    assert timeout_of(engine("render", "web", "web/jobs", "web/jobs/a.yaml")) == 420


def test_a_defaults_root_that_is_beside_the_paths_is_refused(
    tmp_path: Path, engine: Engine
) -> None:
    write(tmp_path, "web/jobs/a.yaml", SPEC)
    (tmp_path / "other").mkdir()
    said = engine("validate", "web/jobs", "--defaults-root", "other")
    assert (said.code, said.stderr) == (
        2,
        f"error: --defaults-root {tmp_path}/other: none of the named paths is below it\n",
    )


def test_defaults_cant_bring_in_a_variable_that_isnt_allowed(
    tmp_path: Path, engine: Engine
) -> None:
    write(tmp_path, "d.yaml", DEFAULTS.replace("timeout: 7m", "secrets: {T: {fromEnv: KEY}}"))
    write(tmp_path, "a/a.yaml", SPEC)
    write(tmp_path, "b/b.yaml", SPEC.replace("build", "other"))
    said = engine("validate", ".", env={"KEY": "hunter2"})
    assert said.code == 2
    (line,) = said.stdout.splitlines()
    assert line.startswith("d.yaml:3:31: fromEnv: the variable KEY is not allowed")
