"""The embedded cluster for everybody: `engine demo`, `engine sandbox`, `reconcile --sandbox`."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ENGINE = [sys.executable, "-m", "engine"]
ROOT = Path(__file__).parents[3]
HELLO = str(ROOT / "examples" / "hello")
_VARIES = re.compile(r"(?<=age )\d+s|\d+\.\ds *")
_MAY_BE_MISSED = re.compile(r".*: Running( \(attempt \d+\))?")
"""On a slow machine a container has ended before its start was seen."""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ENGINE_")}
    return subprocess.run(
        [*ENGINE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if arguments == ("demo",) else subprocess.PIPE,
        text=True,
        timeout=100,
        check=False,
        env={**kept, "KUBECONFIG": "/dev/null"},
    )


@pytest.fixture(scope="module")
def demo() -> subprocess.CompletedProcess[str]:
    return run("demo")


def chapters(text: str) -> list[list[str]]:
    """The lines of each chapter, without what varies: times, and the order of those at once."""
    lines = [_VARIES.sub("N", line).rstrip() for line in text.strip().splitlines()]
    kept = [line for line in lines if not _MAY_BE_MISSED.fullmatch(line)]
    return [sorted(chapter.splitlines()) for chapter in "\n".join(kept).split("\n\n")]


def test_the_demo_prints_what_its_page_says(demo: subprocess.CompletedProcess[str]) -> None:
    """`…` stands for what is cut."""
    (said,) = re.findall(r"\$ make demo\n(.*?)```", page("docs/demo.md"), re.DOTALL)
    for told, printed in zip(chapters(said), chapters(demo.stdout), strict=True):
        for expected, line in zip(told, printed, strict=True):
            assert re.fullmatch(re.escape(expected).replace("…", ".*"), line), line


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_demo_tells_every_chapter_and_ends_with_0(
    demo: subprocess.CompletedProcess[str],
) -> None:
    done = demo
    assert done.returncode == 0, done.stdout
    for words in (
        "Owned from birth",
        "pull policy Always failed, next is IfNotPresent",
        "DeadlineExceeded",
        "exceeded quota: demo-quota",
        "pods: 0, Secrets: 0; records: 4",
        "ttl 4500s, age",
        "4 requests, 0 writes",
    ):
        assert words in done.stdout
    assert "a-token-that-nobody-sees" not in done.stdout


def test_reconcile_on_a_sandbox_needs_no_cluster_and_says_that_nothing_is_run() -> None:
    done = run("reconcile", "--once", "--sandbox", HELLO, "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["jobs"][0]["state"] == "Succeeded"
    assert "no container is run" in done.stderr


def test_the_sandbox_prints_the_export_of_its_kubeconfig_and_stops_on_ctrl_c() -> None:
    with subprocess.Popen(
        [*ENGINE, "sandbox"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        command, _, path = process.stdout.readline().strip().partition("=")
        assert command == "export KUBECONFIG"
        kubeconfig = Path(path)
        server = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        with urllib.request.urlopen(f"{server}/version", timeout=60) as answer:  # noqa: S310 - loopback
            assert json.load(answer)["major"] == "1"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert not kubeconfig.exists()


def test_a_malformed_scenario_is_one_line_with_its_place(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("containers:\n\t- image: x\n")
    done = run("sandbox", "--scenario", str(scenario))
    assert done.returncode == 2
    assert f"{scenario}:2:" in done.stderr
    assert len(done.stderr.splitlines()) == 1
