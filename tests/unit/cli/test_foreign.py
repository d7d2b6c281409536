"""A folder that holds other things than specs, or none at all, for each command that reads it."""

from pathlib import Path

import pytest

from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
BATCH = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {}}\n"
BATCH_WORD = (
    "a Job of batch/v1 is no JobSpec (engine convert writes the JobSpec of a Job or a CronJob)"
)
NO_SPECS = "error: no job specs found (--allow-empty, if that is meant)"
DEFAULTS = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec: {timeout: 7m}\n"
READERS = [
    ("validate",),
    ("render",),
    ("reconcile", "--once", "--sandbox"),
    ("reconcile", "--dry-run", "client", "--sandbox"),
]
"""`diff` needs a cluster that is there: tests/e2e/test_foreign.py."""


def name_of(command: tuple[str, ...]) -> str:
    return " ".join(command)


@pytest.mark.parametrize("command", READERS, ids=name_of)
def test_documents_of_other_groups_are_skipped_and_counted(
    tmp_path: Path, engine: Engine, command: tuple[str, ...]
) -> None:
    write(tmp_path, "specs/a.yaml", document("a"))
    write(tmp_path, "specs/deploy.yaml", f"{DEPLOYMENT}---\n{DEPLOYMENT}")
    said = engine(*command, "specs")
    assert said.code == 0
    assert "note: 2 documents of other API groups skipped (--strict refuses them)" in said.lines
    assert "Deployment" not in said.stdout


@pytest.mark.parametrize("command", READERS, ids=name_of)
def test_strict_refuses_them(tmp_path: Path, engine: Engine, command: tuple[str, ...]) -> None:
    write(tmp_path, "specs/a.yaml", document("a"))
    write(tmp_path, "specs/deploy.yaml", f"{DEPLOYMENT}---\n{BATCH}")
    said = engine(*command, "--strict", "specs")
    assert said.code == 2
    refused = "a Deployment of apps/v1 is no JobSpec (it is skipped without --strict)"
    assert [line for line in (said.stdout + said.stderr).splitlines() if "specs/" in line] == [
        f"specs/deploy.yaml:1:13: {refused}",
        f"specs/deploy.yaml:5:13: {BATCH_WORD}",
    ]


@pytest.mark.parametrize("command", READERS, ids=name_of)
def test_a_job_of_kubernetes_among_the_specs_gets_the_word_that_helps(
    tmp_path: Path, engine: Engine, command: tuple[str, ...]
) -> None:
    write(tmp_path, "specs/a.yaml", document("a"))
    write(tmp_path, "specs/b.yaml", f"{BATCH}---\n{BATCH}")
    said = engine(*command, "specs")
    assert said.code == 0
    assert said.lines.count(f"note: specs/b.yaml:1:13: {BATCH_WORD}") == 1


@pytest.mark.parametrize("command", READERS, ids=name_of)
def test_a_slip_of_the_pen_is_no_stranger(
    tmp_path: Path, engine: Engine, command: tuple[str, ...]
) -> None:
    write(tmp_path, "specs/a.yaml", document("a"))
    write(tmp_path, "specs/b.yaml", "apiVersion: job.engine/v1alpha1\nkind: JobSpec\n")
    said = engine(*command, "specs")
    assert said.code == 2
    assert "did you mean jobs.engine/v1alpha1?" in said.stdout + said.stderr


@pytest.mark.parametrize("command", READERS, ids=name_of)
def test_no_specs_are_an_error_unless_that_is_meant(
    tmp_path: Path, engine: Engine, command: tuple[str, ...]
) -> None:
    write(tmp_path, "specs/a.yaml", DEFAULTS)
    said = engine(*command, "specs")
    assert (said.code, said.lines[-1]) == (2, NO_SPECS)
    assert engine(*command, "specs", "--allow-empty").code == 0


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n", DEFAULTS, BATCH])
def test_a_file_without_a_spec_holds_none(tmp_path: Path, engine: Engine, text: str) -> None:
    write(tmp_path, "a.yaml", text)
    said = engine("validate", ".")
    assert (said.code, said.stdout, said.lines[-1]) == (2, "", NO_SPECS)


@pytest.mark.parametrize("name", ["job.json", "job.YAML", "..yaml"])
def test_a_folder_whose_files_have_other_endings_has_no_specs(
    tmp_path: Path, engine: Engine, name: str
) -> None:
    write(tmp_path, f"specs/{name}", document("a"))
    said = engine("validate", "specs")
    assert (said.code, said.stdout, said.stderr) == (2, "", f"{NO_SPECS}\n")


def test_what_is_wrong_is_told_alone(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, "a.yaml", document("a", timeout=0))
    said = engine("validate", ".")
    assert (said.code, said.stderr) == (2, "")
