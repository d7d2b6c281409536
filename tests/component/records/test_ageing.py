"""Records of jobs whose spec is gone age from when that was noticed; no others do."""

import subprocess
import sys
import time
from functools import partial
from typing import Any

import pytest

from engine.sandbox import Fault, Sandbox
from engine.sandbox.faults import ServerError
from tests.support.client import eventually
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.objects import Objects

DAY = 86_400
ORPHANED_SINCE = "jobs.engine/orphaned-since"
STAYING = ("--prune-interval", "0.2s", "--source", "web")


@pytest.fixture(autouse=True)
def own_source(engine: Engine) -> None:
    """Only under a source of its own a folder can miss a spec."""
    engine.environment["ENGINE_SOURCE"] = "web"


def marks(sandbox: Sandbox, job: str = "gone", namespace: str = NAMESPACE) -> dict[str, str] | None:
    """Annotations of a job's record; None if it has none."""
    found = sandbox.get("configmaps", namespace, f"{job}.record")
    return None if found is None else dict(found["metadata"].get("annotations") or {})


def run_and_remove(engine: Engine, job: str = "gone") -> None:
    """A finished job, a living one, and the first reconcile that misses the spec of the one."""
    engine.spec("lives", script="true")
    engine.spec(job, script="true")
    engine.reconcile(ends=0)
    (engine.folder / f"{job}.yaml").unlink()


def prune(engine: Engine, *arguments: str) -> dict[str, str]:
    """What became of each record that `engine prune` judged."""
    run = engine.run("prune", "-n", NAMESPACE, "-o", "json", *arguments, ends=0)
    return _by_name(run.result["pruned"])


def _by_name(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {e["name"]: e["action"] for e in entries if e["name"].endswith(".record")}


def test_a_record_goes_thirty_days_after_its_spec_was_missed_and_one_with_a_spec_never(
    engine: Engine, sandbox: Sandbox
) -> None:
    run_and_remove(engine)
    engine.reconcile(ends=0)
    mark = (marks(sandbox) or {})[ORPHANED_SINCE]
    assert marks(sandbox, "lives") == {}
    told = {name: entry["specGoneSince"] for name, entry in engine.status().items()}
    assert told == {"gone": mark.replace("Z", ".000Z"), "lives": None}
    described = engine.run("describe", "gone", "-n", NAMESPACE, ends=0).stdout
    assert f"Spec gone:  {told['gone']} (" in described
    sandbox.clock.advance(29 * DAY)
    sandbox.requests.clear()
    engine.reconcile(ends=0)
    assert sandbox.requests.where("update", "configmaps") == []
    assert marks(sandbox) is not None
    sandbox.clock.advance(2 * DAY)
    run = engine.reconcile(ends=0)
    assert _by_name(run.result["pruned"]) == {"gone.record": "deleted"}
    assert (marks(sandbox), marks(sandbox, "lives")) == (None, {})
    assert run.job("lives")["changed"] is False


def test_a_dry_run_of_the_client_shows_records_without_a_right_to_write(
    engine: Engine, sandbox: Sandbox
) -> None:
    run_and_remove(engine)
    engine.reconcile(ends=0)
    sandbox.clock.advance(31 * DAY)
    engine.run("prune", "-n", NAMESPACE, "--kinds", "pods", ends=0)
    for verb in ("update", "delete"):
        for resource in ("pods", "configmaps", "secrets"):
            sandbox.deny(verb, resource)
    assert prune(engine, "--dry-run", "client", "--kinds", "configmaps") == {
        "gone.record": "would-delete"
    }


def test_engine_prune_takes_marked_records_alone_and_shows_them_first(
    engine: Engine, sandbox: Sandbox
) -> None:
    run_and_remove(engine)
    sandbox.clock.advance(90 * DAY)
    assert prune(engine) == {}
    engine.reconcile(ends=0)
    sandbox.clock.advance(29 * DAY)
    assert prune(engine) == {"gone.record": "kept"}
    sandbox.clock.advance(2 * DAY)
    assert prune(engine, "--dry-run", "client") == {"gone.record": "would-delete"}
    assert prune(engine, "--dry-run", "server") == {"gone.record": "would-delete"}
    run = engine.run("prune", "-n", NAMESPACE, ends=0)
    assert "deleted       configmap/ci/gone.record  its spec is gone since " in run.stdout
    assert marks(sandbox) is None


def test_a_job_of_a_folder_that_runs_once_a_quarter_does_not_run_again(
    engine: Engine, sandbox: Sandbox
) -> None:
    engine.spec("quarterly", script="true")
    engine.reconcile("--source", "quarter", ends=0)
    (engine.folder / "quarterly.yaml").unlink()
    for number in range(3):
        sandbox.clock.advance(30 * DAY)
        engine.spec("monthly", script=f"echo {number}")
        engine.reconcile(ends=0)
        assert "quarterly.record" not in prune(engine)
    (engine.folder / "monthly.yaml").unlink()
    engine.spec("quarterly", script="true")
    run = engine.reconcile("--source", "quarter", ends=0)
    assert run.job("quarterly")["changed"] is False


def test_a_spec_that_is_back_stops_the_ageing_and_runs_nothing(
    engine: Engine, sandbox: Sandbox
) -> None:
    run_and_remove(engine)
    engine.reconcile(ends=0)
    sandbox.clock.advance(29 * DAY)
    engine.spec("gone", script="true")
    told = engine.run("diff", str(engine.folder), ends=1)
    assert "record that the spec is back" in told.stdout
    run = engine.reconcile(ends=0)
    assert f"{NAMESPACE}/gone: its spec is back; its record ages no more" in run.lines
    assert engine.run("diff", str(engine.folder), ends=0).stdout == ""
    assert (run.job("gone")["changed"], run.job("gone")["state"]) == (False, "Succeeded")
    assert ORPHANED_SINCE not in (marks(sandbox) or {})
    sandbox.clock.advance(90 * DAY)
    assert prune(engine) == {}
    assert engine.reconcile(ends=0).job("gone")["changed"] is False


def test_a_record_stays_as_long_as_a_pod_of_its_job(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    engine.spec("lives", script="true")
    engine.spec("gone", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "gone.yaml").unlink()
    engine.reconcile(ends=0)
    name = objects.pod("gone")["metadata"]["name"]
    hold = {"metadata": {"annotations": {"jobs.engine/hold": "true"}, "labels": None}}
    objects.api.patch("pods", name, hold, NAMESPACE)
    sandbox.clock.advance(60 * DAY)
    assert prune(engine) == {"gone.record": "kept"}
    assert engine.reconcile(ends=0).result["pruned"] == []
    objects.api.delete("pods", name, NAMESPACE, grace=0)
    assert prune(engine) == {"gone.record": "deleted"}


def test_what_could_not_be_read_is_not_gone(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    run_and_remove(engine)
    engine.write("broken.yaml", "kind: JobSpec\napiVersion: jobs.engine/v1alpha1\nspec: [")
    engine.reconcile(ends=2)
    with EngineProcess(engine, *STAYING) as staying:
        staying.wait_for_line("broken.yaml")
        time.sleep(1)
        assert marks(sandbox) == {}
        (engine.folder / "broken.yaml").unlink()
        objects.api.wait(lambda: ORPHANED_SINCE in (marks(sandbox) or {}), "the mark")


@pytest.mark.parametrize("how", ["source", "file", "file and folder", "stdin"])
def test_the_shared_source_a_single_file_and_stdin_never_let_the_records_of_others_age(
    engine: Engine, sandbox: Sandbox, how: str
) -> None:
    if how == "source":
        del engine.environment["ENGINE_SOURCE"]
    run_and_remove(engine)
    for name in ("other", "-"):
        (engine.folder / name).mkdir()
    folder = str(engine.folder)
    paths = {
        "source": [folder],
        "file": [f"{folder}/lives.yaml"],
        "file and folder": [f"{folder}/other", f"{folder}/lives.yaml"],
        "stdin": ["-"],
    }[how]
    said = subprocess.run(
        [sys.executable, "-m", "engine", "reconcile", "--once", *paths],
        input=(engine.folder / "lives.yaml").read_text(),
        env=engine.environment_of_process(),
        cwd=engine.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert marks(sandbox) == {}


def test_the_mark_is_announced_once_with_the_number_and_the_time_that_is_left(
    engine: Engine,
) -> None:
    engine.spec("first", script="true")
    run_and_remove(engine)
    (engine.folder / "first.yaml").unlink()
    words = "note: source web: 2 jobs have no spec any more; their records are kept for 30d"
    assert words in engine.reconcile(ends=0).lines
    assert "no spec any more" not in engine.reconcile(ends=0).stderr


def test_one_busy_moment_of_the_server_never_leaves_a_record_without_its_mark(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    sandbox.namespace("dev")
    engine.namespace = "dev"
    engine.spec("elsewhere", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "elsewhere.yaml").unlink()
    engine.namespace = NAMESPACE
    run_and_remove(engine)
    sandbox.faults.add(Fault(ServerError(503), verb="update", resource="configmaps", times=2))
    with EngineProcess(engine, *STAYING) as staying:
        staying.wait_for_line("marking records whose spec is gone: ")
        objects.api.wait(lambda: ORPHANED_SINCE in (marks(sandbox) or {}), "the mark")
        elsewhere = partial(marks, sandbox, "elsewhere", "dev")
        objects.api.wait(lambda: ORPHANED_SINCE in (elsewhere() or {}), "the other mark")


def test_a_mark_that_is_refused_is_not_asked_for_at_every_pass(
    engine: Engine, sandbox: Sandbox
) -> None:
    run_and_remove(engine)
    sandbox.deny("update", "configmaps")
    sandbox.requests.clear()
    with EngineProcess(engine, *STAYING) as staying:
        staying.wait_for_line("marking records whose spec is gone: ")
        time.sleep(2)
    assert len(sandbox.requests.where("update", "configmaps")) == 1


def test_an_empty_folder_marks_nothing_unless_that_is_meant(
    engine: Engine, sandbox: Sandbox
) -> None:
    run_and_remove(engine)
    (engine.folder / "lives.yaml").unlink()
    engine.run("reconcile", "--once", str(engine.folder), "-n", NAMESPACE)
    assert marks(sandbox) == {}
    engine.reconcile("--allow-empty", "-n", NAMESPACE, ends=0)
    assert ORPHANED_SINCE in (marks(sandbox) or {})


def test_records_age_in_namespaces_that_no_spec_names_any_more(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.namespace("dev")
    engine.namespace = "dev"
    engine.spec("gone", script="true")
    engine.reconcile(ends=0)
    (engine.folder / "gone.yaml").unlink()
    engine.namespace = NAMESPACE
    engine.spec("lives", script="true")
    engine.reconcile(ends=0)
    assert ORPHANED_SINCE in (marks(sandbox, namespace="dev") or {})
    sandbox.clock.advance(31 * DAY)

    def is_gone() -> bool:
        """Not before its pod, which the same reconcile deletes."""
        engine.reconcile(ends=0)
        return marks(sandbox, namespace="dev") is None

    eventually(is_gone)


def test_the_limit_of_deletes_holds_for_records_and_the_rest_is_left_unasked(
    engine: Engine, sandbox: Sandbox
) -> None:
    text = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nlimits: {maxDeletesPerPass: 2}\n"
    config = str(engine.write("../engine.yaml", text))
    for number in range(6):
        engine.spec(f"job-{number}", script="true")
    engine.reconcile(ends=0)
    for number in range(6):
        (engine.folder / f"job-{number}.yaml").unlink()
    engine.reconcile("--allow-empty", "-n", NAMESPACE, ends=0)
    sandbox.clock.advance(20 * DAY)
    engine.reconcile("--allow-empty", "-n", NAMESPACE, ends=0)
    sandbox.clock.advance(20 * DAY)
    sandbox.requests.clear()
    run = engine.reconcile("--allow-empty", "-n", NAMESPACE, "--config", config, ends=0)
    assert "warning: the limit of 2 deletes is reached, 4 more would go" in run.stderr
    assert len(sandbox.requests.where("delete", "configmaps")) == 2
    assert len(sandbox.requests.where("get", "configmaps")) <= 12


def test_an_engine_that_stays_marks_records_and_deletes_them_in_their_time(
    engine: Engine, sandbox: Sandbox, objects: Objects
) -> None:
    run_and_remove(engine)
    with EngineProcess(engine, *STAYING) as staying:
        objects.api.wait(lambda: ORPHANED_SINCE in (marks(sandbox) or {}), "the mark")
        sandbox.clock.advance(31 * DAY)
        objects.api.wait(lambda: marks(sandbox) is None, "end of the record")
        assert marks(sandbox, "lives") == {}
    assert "configmap/ci/gone.record" in staying.text


@pytest.mark.parametrize(("ttl", "goes"), [("1h", True), ("forever", False)])
def test_the_operator_says_how_long_records_are_kept(
    engine: Engine, sandbox: Sandbox, ttl: str, goes: bool
) -> None:
    text = f"apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\nrecords: {{ttl: {ttl}}}\n"
    config = str(engine.write("../engine.yaml", text))
    run_and_remove(engine)
    engine.reconcile(ends=0)
    sandbox.clock.advance(3 * 3600)
    engine.reconcile("--config", config, ends=0)  # its pod goes, and so may a record without one
    engine.reconcile("--config", config, ends=0)
    assert (marks(sandbox) is None) is goes
    assert prune(engine, "--config", config) == ({} if goes else {"gone.record": "protected"})


def test_a_queued_job_that_nobody_asks_for_any_more_leaves_no_record_for_ever(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.quota(NAMESPACE, pods="0")
    engine.spec("gone", script="true")
    engine.reconcile("--queue-timeout", "1s", ends=5)
    (engine.folder / "gone.yaml").unlink()
    for _ in range(3):
        engine.reconcile("--allow-empty", "-n", NAMESPACE, ends=0)
        sandbox.clock.advance(20 * DAY)
    engine.reconcile("--allow-empty", "-n", NAMESPACE, ends=0)
    assert marks(sandbox) is None


def test_who_may_not_write_records_is_told_and_its_jobs_are_not_failed_for_it(
    engine: Engine, sandbox: Sandbox
) -> None:
    run_and_remove(engine)
    sandbox.deny("update", "configmaps")
    run = engine.reconcile(ends=0)
    assert "warning: marking records whose spec is gone: " in run.stderr
    assert marks(sandbox) == {}
