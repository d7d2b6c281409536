from pathlib import Path
from typing import Any

import pytest

from engine.api.model import Config, Job
from engine.reconcile.secret_values import resolve_secrets
from engine.specdir.load import load_specs
from engine.telemetry.redact import Redactor
from tests.unit.builders import document, write


def job_in(folder: Path, **sources: Any) -> Job:
    """A job in `folder` whose one secret T comes from there."""
    write(folder, "job.yaml", document(secrets={"T": sources}))
    loaded = load_specs([str(folder)], Config(), "ci")
    (job,) = loaded.jobs
    return job


def value(job: Job, environment: dict[str, str] | None = None) -> str:
    values, problems = resolve_secrets(job, environment or {})
    assert problems == ()
    return values.variables["T"]


def line(job: Job, environment: dict[str, str] | None = None) -> str:
    (problem,) = resolve_secrets(job, environment or {})[1]
    return str(problem)


def test_a_value_comes_from_the_environment(tmp_path: Path) -> None:
    assert value(job_in(tmp_path, fromEnv="TOKEN"), {"TOKEN": " a\nb "}) == " a\nb "


def test_an_empty_variable_is_set(tmp_path: Path) -> None:
    assert value(job_in(tmp_path, fromEnv="TOKEN"), {"TOKEN": ""}) == ""


def test_a_variable_that_is_not_set_is_told_at_its_place(tmp_path: Path) -> None:
    told = line(job_in(tmp_path, fromEnv="TOKEN"))
    assert told.startswith(f"{tmp_path}/job.yaml:1:")
    assert "fromEnv: the variable TOKEN is not set (set it in the engine's environment)" in told


def test_a_value_comes_from_a_file_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, "deep/token", "a\nb ü\n")
    assert value(job_in(tmp_path, fromFile="deep/token")) == "a\nb ü\n"


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    assert "fromFile: there is no file token" in line(job_in(tmp_path, fromFile="token"))


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "real", "x")
    (tmp_path / "token").symlink_to("real")
    assert value(job_in(tmp_path, fromFile="token")) == "x"


@pytest.mark.parametrize("way", ["file", "folder", "chain"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, way: str) -> None:
    outside = write(tmp_path, "outside/token", "hunter2")
    specs = tmp_path / "specs"
    specs.mkdir()
    match way:
        case "file":
            (specs / "token").symlink_to(outside)
        case "folder":
            (specs / "deep").symlink_to(outside.parent)
        case _:
            (specs / "token").symlink_to("next")
            (specs / "next").symlink_to(outside)
    name = "deep/token" if way == "folder" else "token"
    told = line(job_in(specs, fromFile=name))
    assert f"fromFile: {name} leads out of the spec's folder" in told
    assert "hunter2" not in told


def test_links_that_go_round_in_circles_are_told(tmp_path: Path) -> None:
    (tmp_path / "token").symlink_to("token")
    assert "token is a loop of symbolic links" in line(job_in(tmp_path, fromFile="token"))


def test_a_folder_is_no_value(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    assert "fromFile: token: Is a directory" in line(job_in(tmp_path, fromFile="token"))


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    write(tmp_path, "token", b"\xff\xfe")
    assert "token is not UTF-8 text (encode it, say as base64)" in line(
        job_in(tmp_path, fromFile="token")
    )


def test_a_file_that_is_too_large_is_told(tmp_path: Path) -> None:
    write(tmp_path, "token", "x" * (1024 * 1024 + 1))
    assert "token is larger than 1 MiB" in line(job_in(tmp_path, fromFile="token"))


def test_a_nul_character_is_told_without_the_value(tmp_path: Path) -> None:
    write(tmp_path, "token", "hunter2\0")
    told = line(job_in(tmp_path, fromFile="token"))
    assert "the value contains a NUL character" in told
    assert "hunter2" not in told


def test_every_missing_value_is_told(tmp_path: Path) -> None:
    login = {"registry": "r", "username": "u", "password": {"fromEnv": "B"}}
    spec = document(secrets={"T": {"fromEnv": "A"}}, registryCredentials=[login])
    write(tmp_path, "job.yaml", spec)
    (job,) = load_specs([str(tmp_path)], Config(), "ci").jobs
    assert len(resolve_secrets(job, {})[1]) == 2


def test_values_are_not_in_what_they_print_as(tmp_path: Path) -> None:
    values, _ = resolve_secrets(job_in(tmp_path, fromEnv="T"), {"T": "hunter2"})
    assert "hunter2" not in repr(values)
    assert values.all == ("hunter2",)


def test_known_values_are_taken_out_of_every_text() -> None:
    redact = Redactor()
    redact.add(["hunter2\n", "hunter2-long", "ab"])
    assert redact("a hunter2 b hunter2-long c aHVudGVyMgo= d ab") == "a *** b *** c *** d ab"
