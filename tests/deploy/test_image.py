"""What the image is built of, and with; that it runs is shown on the cluster."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from engine import __version__
from tests.cluster.engine_image import final_stage
from tests.support.pages import ROOT


def locked(name: str) -> dict[str, str]:
    """Of each package that a file of requirements/ locks: its lines, which hold the hashes."""
    text = (ROOT / "requirements" / name).read_text()
    parts = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return {part.partition("==")[0]: part for part in parts if "==" in part}


def test_what_it_runs_is_locked_by_hash_and_what_builds_the_wheel_is_not_in_it() -> None:
    runs, builds = locked("run.txt"), locked("build.txt")
    assert "kubernetes" in runs
    assert "hatchling" in builds
    assert not set(runs) & set(builds)
    assert all("--hash=sha256:" in lines for lines in (*runs.values(), *builds.values()))


def test_nothing_but_the_wheels_sources_and_the_locks_are_sent_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    sources = {"engine", "schemas", "templates", "examples"}
    assert let_in == sources | {"pyproject.toml", "README.md", "LICENSE", "requirements"}
    assert all((ROOT / name).exists() for name in let_in)


def test_it_is_nobodys_runs_without_a_shell_and_its_base_is_an_argument() -> None:
    stage = final_stage()
    assert stage["USER"] == "65532:65532"
    assert stage["ENTRYPOINT"] == '["/opt/engine/bin/engine"]'
    assert "RUN" not in stage
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert text.count("--require-hashes") == 2


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with what make needs, and no builder of images."""
    for name in ("awk", "bash", "git", "make", "nproc", "sed", "sh"):
        found = next(Path(p, name) for p in os.get_exec_path() if Path(p, name).exists())
        (tmp_path / name).symlink_to(found)
    return tmp_path


def make_image(tools: Path, *given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "image", *given],
        cwd=ROOT,
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )


def program(tools: Path, name: str, script: str) -> None:
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)


def test_without_a_builder_it_says_what_to_install(tools: Path) -> None:
    program(tools, "docker", 'echo "Cannot connect to the Docker daemon" >&2; exit 1')
    done = make_image(tools)
    assert done.returncode != 0
    assert "No docker, podman or buildah works here" in done.stderr
    assert "apt-get install buildah" in done.stderr


def test_the_first_builder_that_works_is_used_with_our_version_and_the_base_that_was_given(
    tools: Path,
) -> None:
    program(tools, "docker", "exit 1")
    program(tools, "buildah", '[ "$1" = info ] || echo "$@"')
    done = make_image(tools, "IMAGE=your.registry/engine:1", "BASE=python@sha256:abc")
    assert done.returncode == 0, done.stderr
    argv = done.stdout.split()
    assert argv[0] == "build"
    assert {"your.registry/engine:1", "BASE=python@sha256:abc", f"VERSION={__version__}"} < set(
        argv
    )


@pytest.mark.parametrize(
    ("builder", "last"),
    [
        ("docker", "save --output image.tar engine:1"),
        ("podman", "save --format oci-archive --output image.tar engine:1"),
        ("buildah", "push engine:1 oci-archive:image.tar:engine:1"),
    ],
)
def test_an_archive_is_written_by_the_builder_that_built_it(
    tools: Path, builder: str, last: str
) -> None:
    program(tools, builder, '[ "$1" = info ] || echo "$@"')
    done = make_image(tools, "IMAGE=engine:1", "ARCHIVE=image.tar")
    assert done.returncode == 0, done.stderr
    built, written = done.stdout.splitlines()
    assert built.startswith("build ")
    assert written == last


def test_a_build_that_fails_is_no_reason_to_try_the_next_builder(tools: Path) -> None:
    program(tools, "docker", '[ "$1" = info ] || { echo "no base" >&2; exit 7; }')
    program(tools, "podman", "exit 0")
    done = make_image(tools, "ARCHIVE=image.tar")
    assert done.returncode != 0
    assert "no base" in done.stderr
    assert "podman" not in done.stderr
