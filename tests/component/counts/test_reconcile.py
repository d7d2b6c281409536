"""How often a reconcile parses, renders, asks and writes: counted, as time is no test."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.api.versions import API_VERSION
from engine.api.yaml_reader import read_yaml
from engine.cli.main import cli
from engine.render.templates import Templates
from engine.sandbox import Sandbox
from tests.unit.builders import document, write

JOBS = 25
Reconcile = Callable[..., Counter[str]]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture
def reconcile(tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Reconcile:
    """Runs the command in this process, and counts what it does."""
    counts: Counter[str] = Counter()

    def counted(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            counts[name] += 1
            return work(*arguments)

        return call

    monkeypatch.setattr("engine.api.parse.read_yaml", counted("parses", read_yaml))
    monkeypatch.setattr(Templates, "render", counted("renders", Templates.render))
    kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
    for number in range(JOBS):
        spec = document(f"job-{number}", secrets={"T": {"value": "x"}})
        write(tmp_path, f"specs/{number}.yaml", spec)

    def run(*more: str) -> Counter[str]:
        counts.clear()
        sandbox.requests.clear()
        where = [str(tmp_path / "specs"), "--kubeconfig", str(kubeconfig)]
        with pytest.raises(SystemExit) as left:
            cli.main(["reconcile", "--once", *where, *more], standalone_mode=False)
        assert left.value.code == 0
        return counts

    return run


def test_a_start_parses_once_renders_once_writes_five_times_and_watches_a_scout_at_most(
    reconcile: Reconcile, sandbox: Sandbox
) -> None:
    counts = reconcile("--wait", "applied", "--concurrency", "4")
    assert counts == {"parses": JOBS, "renders": 3 * JOBS}
    assert len(sandbox.requests.where("watch")) <= 1, "until the first pod has the image"
    first = Counter((entry.verb, entry.resource) for entry in sandbox.requests.writes)
    first.subtract(_ends(sandbox))
    assert +first == {
        ("create", "pods"): JOBS,
        ("create", "secrets"): JOBS,
        ("create", "configmaps"): 2 * JOBS,
        ("patch", "pods"): JOBS,
    }


def test_whether_there_are_job_spec_objects_is_not_asked_for_each_job(
    reconcile: Reconcile, sandbox: Sandbox
) -> None:
    reconcile("--wait", "applied", "--concurrency", "4")
    asked = Counter(one.path for one in sandbox.requests)
    assert 1 <= asked[f"/apis/{API_VERSION}"] <= 4, "once for each that works at that moment"


def test_a_second_run_parses_renders_nothing_and_asks_as_little_as_for_one_job(
    reconcile: Reconcile, sandbox: Sandbox
) -> None:
    reconcile()
    counts = reconcile()
    assert counts == {"parses": JOBS}
    assert not sandbox.requests.writes
    assert len(sandbox.requests) == 4


def _ends(sandbox: Sandbox) -> Counter[tuple[str, str]]:
    """A pod may have ended before its start was settled: then its outcome is written too."""
    updates = sandbox.requests.where("update", "configmaps")
    return Counter({("update", "configmaps"): len(updates)})
