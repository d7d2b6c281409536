import base64
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.api.model import Config, Job, Limits
from engine.lifecycle.attempt import RenderConfig
from engine.reconcile.job_store import TrackedJob
from engine.render.secret_values import resolve_secrets
from engine.render.templates import Templates
from engine.specdir.load import load_specs
from engine.specdir.options import SpecOptions
from engine.telemetry.redact import Redactor
from tests.unit.builders import document, make_job, write

ANY = Limits(allowed_secret_env=("*",))


def job_in(folder: Path, below: str = "", **sources: Any) -> Job:
    """A job in `folder`, or `below` it, whose one secret T comes from there."""
    write(folder / below, "job.yaml", document(secrets={"T": sources}))
    loaded = load_specs(SpecOptions(paths=(str(folder),), namespace="ci"), Config(limits=ANY))
    (job,) = loaded.jobs
    return job


def value(job: Job, environment: dict[str, str] | None = None) -> str:
    values, problems = resolve_secrets(job, environment or {}, ANY)
    assert problems == ()
    return values.variables["T"]


def line(job: Job, environment: dict[str, str] | None = None, limits: Limits = ANY) -> str:
    (problem,) = resolve_secrets(job, environment or {}, limits)[1]
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


def test_a_file_of_a_mounted_secret_is_read(tmp_path: Path) -> None:
    """Kubernetes mounts a Secret or ConfigMap as links into a folder with two dots in front."""
    write(tmp_path, "..2026_01_01/token", "x")
    (tmp_path / "..data").symlink_to("..2026_01_01")
    (tmp_path / "token").symlink_to("..data/token")
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


@pytest.mark.parametrize(
    "target", ["..env", ".git/config", "deep/..env", "deep/.env", "deep/../.git/config"]
)
@pytest.mark.parametrize("exists", [True, False])
def test_no_link_leads_to_a_hidden_file(tmp_path: Path, target: str, *, exists: bool) -> None:
    (tmp_path / "deep").mkdir()
    if exists:
        write(tmp_path, target, "hunter2")
    (tmp_path / "token").symlink_to(target)
    told = line(job_in(tmp_path, fromFile="token"))
    assert "fromFile: token leads out of the spec's folder, or to a hidden file" in told


@pytest.mark.parametrize("outside", ["../there", "../missing", "/etc/hostname", "/missing"])
def test_a_link_out_of_the_folder_does_not_tell_what_exists(tmp_path: Path, outside: str) -> None:
    write(tmp_path, "there", "hunter2")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/token").symlink_to(outside)
    told = line(job_in(tmp_path / "specs", fromFile="token"))
    assert told.endswith(
        "fromFile: token leads out of the spec's folder, or to a hidden file "
        "(a symbolic link must be relative and may point at neither)"
    )


@pytest.mark.parametrize("what", ["web", "web/deep", "web/deep/token"])
def test_no_link_that_is_put_there_at_the_last_moment_reads_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """With the folder that was named itself, anything may be done: it is the operator's."""
    write(tmp_path, "specs/web/deep/token", "ours")
    write(tmp_path, "out/web/deep/token", "hunter2")
    job = job_in(tmp_path / "specs", "web", fromFile="deep/token")
    assert value(job) == "ours"
    place, really_open = tmp_path / "specs" / what, os.open

    def swap_and_open(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if os.path.basename(path) == place.name:  # noqa: PTH119 - also of a bare name
            place.rename(tmp_path / "before")
            place.symlink_to(tmp_path / "out" / what)
        return really_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_and_open)
    values, problems = resolve_secrets(job, {}, ANY)
    assert place.is_symlink()
    assert (values.variables["T"], len(problems)) == ("", 1)


@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a pipe"])
def test_a_pipe_is_never_waited_for(tmp_path: Path, kind: str) -> None:
    job = job_in(tmp_path, fromFile="token")
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "token"))
    else:
        os.mkfifo(tmp_path / "pipe")
        if kind == "pipe":
            (tmp_path / "pipe").rename(tmp_path / "token")
        else:
            (tmp_path / "token").symlink_to("pipe")
    assert "fromFile: token: " in line(job)


def test_limits_that_were_tightened_hold_for_a_job_that_is_active_still(tmp_path: Path) -> None:
    by_env, by_file = job_in(tmp_path, fromEnv="TOKEN"), job_in(tmp_path, fromFile="token")
    for exists in (False, True):
        if exists:
            write(tmp_path, "token", "hunter2")
        environment = {"TOKEN": "hunter2"} if exists else {}
        assert "the variable TOKEN is not allowed" in line(by_env, environment, Limits())
        closed = Limits(allow_secret_files=False)
        assert "the file token is not allowed" in line(by_file, {}, closed)


@pytest.mark.parametrize("source", ["fromEnv", "fromFile"])
def test_a_value_that_is_no_text_stops_nothing(tmp_path: Path, source: str) -> None:
    raw = b"p\xe4ssword"
    write(tmp_path, "TOKEN", raw)
    told = line(job_in(tmp_path, **{source: "TOKEN"}), {"TOKEN": os.fsdecode(raw)})
    assert "is not UTF-8 text (encode it, say as base64)" in told
    assert "ssword" not in told


def test_links_that_go_round_in_circles_are_told(tmp_path: Path) -> None:
    (tmp_path / "token").symlink_to("token")
    told = line(job_in(tmp_path, fromFile="token"))
    assert "fromFile: token: Too many levels of symbolic links" in told


def test_a_folder_is_no_value(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    assert "fromFile: token: this is not a file" in line(job_in(tmp_path, fromFile="token"))


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
    (job,) = load_specs(
        SpecOptions(paths=(str(tmp_path),), namespace="ci"), Config(limits=ANY)
    ).jobs
    assert len(resolve_secrets(job, {}, ANY)[1]) == 2


def test_values_are_not_in_what_they_print_as(tmp_path: Path) -> None:
    values, _ = resolve_secrets(job_in(tmp_path, fromEnv="T"), {"T": "hunter2"}, ANY)
    assert "hunter2" not in repr(values)
    assert values.variables == {"T": "hunter2"}


def test_known_values_are_taken_out_of_every_text() -> None:
    redact = Redactor()
    redact.add(["hunter2\n", "hunter2-long", "ab"])
    assert redact("a hunter2 b hunter2-long c aHVudGVyMgo= d ab") == "a *** b *** c *** d ab"


def test_what_logs_in_to_a_registry_does_not_come_out_in_base64() -> None:
    password = {"value": "correct-horse"}
    logins = [{"registry": "registry.example", "username": "robot", "password": password}]
    state = TrackedJob(make_job(registryCredentials=logins))
    redact = Redactor()
    config = RenderConfig(Templates(), "default", ANY)
    state.prepare(config, {}, redact, ())
    coded = base64.b64encode(b"robot:correct-horse").decode()
    assert redact(f"Basic {coded}, by robot:") == "Basic ***, by robot:"


@pytest.mark.parametrize("count", [2, 100])
def test_references_to_one_large_file_take_no_more_than_a_secret_holds(
    tmp_path: Path, count: int
) -> None:
    write(tmp_path, "big", "x" * 600_000)
    secrets = {f"A{number}": {"fromFile": "big"} for number in range(count)}
    job = replace(make_job(secrets=secrets), folder=str(tmp_path), root=str(tmp_path))
    values, problems = resolve_secrets(job, {}, Limits())
    (problem,) = problems
    assert "together larger than the 1 MiB that a Secret holds" in problem.message
    assert not any(values.variables.values())


def test_a_file_that_many_jobs_refer_to_is_kept_once(tmp_path: Path) -> None:
    write(tmp_path, "big", "x" * 600_000)
    first, second = (value(job_in(tmp_path, fromFile="big")) for _ in range(2))
    assert first is second
