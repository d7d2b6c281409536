"""`reconcile --once` under a CI system: what it leaves behind, however it ends."""

import signal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine, finish
from tests.support.engine_process import wait_for_state
from tests.support.published_schemas import require_valid_junit

SECRET = "hunter2-hunter2"


def test_junit_is_written_when_a_job_fails(
    engine: Engine, target: ClusterUnderTest, tmp_path: Path
) -> None:
    engine.spec("good", script=target.script("good"))
    engine.spec("bad", script=target.script("bad", ends=3))
    path = tmp_path / "out" / "engine.xml"
    engine.reconcile("--junit", str(path), ends=1)
    text = path.read_text(encoding="utf-8")
    require_valid_junit(text)
    cases = {case.get("name"): case for case in ET.fromstring(text).iter("testcase")}
    assert cases["good"].get("classname") == engine.namespace
    assert cases["good"].find("failure") is None
    failure = cases["bad"].find("failure")
    assert failure is not None
    assert failure.get("type") == "ScriptFailed"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_junit_is_written_when_a_signal_ends_the_run(
    engine: Engine, target: ClusterUnderTest, tmp_path: Path, number: int, code: int
) -> None:
    engine.spec("long", script=target.script("long", lasts=600))
    path = tmp_path / "engine.xml"
    process = engine.start("--junit", str(path))
    wait_for_state(engine, "long", "Running")
    assert not path.exists()
    process.send_signal(number)
    finish(process, ends=code)
    (case,) = ET.parse(path).getroot().iter("testcase")
    (told,) = case
    assert (told.tag, told.get("type")) == ("error", "Interrupted")
    assert sorted(p.name for p in tmp_path.glob(".engine.xml*")) == []


def test_junit_is_written_at_the_timeout(
    engine: Engine, target: ClusterUnderTest, tmp_path: Path
) -> None:
    engine.spec("long", script=target.script("long", lasts=600))
    path = tmp_path / "engine.xml"
    engine.reconcile("--timeout", "5s", "--junit", str(path), ends=3)
    (told,) = next(ET.parse(path).getroot().iter("testcase"))
    assert told.get("type") == "Timeout"


@pytest.mark.only("sandbox")
def test_junit_tells_why_nothing_was_started(engine: Engine, tmp_path: Path) -> None:
    engine.spec("bad", timeout=0)
    path = tmp_path / "engine.xml"
    engine.reconcile("--junit", str(path), ends=2)
    require_valid_junit(path.read_text(encoding="utf-8"))
    (told,) = next(ET.parse(path).getroot().iter("testcase"))
    assert "spec.timeout is 0" in (told.get("message") or "")
    engine.spec("bad")
    engine.reconcile("--junit", str(path), "--kubeconfig", str(tmp_path / "nowhere"), ends=6)
    (told,) = next(ET.parse(path).getroot().iter("testcase"))
    assert told.get("type") == "Cluster"


@pytest.mark.only("sandbox")
def test_a_report_that_cant_be_written_is_told_and_changes_no_outcome(
    engine: Engine, tmp_path: Path
) -> None:
    engine.spec("good", script="true")
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "engine.xml"
    said = engine.reconcile("--junit", str(path), ends=0)
    assert said.lines[-1].startswith(f"warning: --junit {path}: can't be written: ")
    engine.reconcile("--junit", str(tmp_path), ends=2)
