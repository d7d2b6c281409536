"""An upgrade changes nothing by itself: what 0.1 finished stays so, and nothing is written."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.engine_process import EngineProcess
from tests.upgrade.scenes import NAMESPACES
from tests.upgrade.stage import BEGINNING, Stage, stage
from tests.upgrade.stored import Object, Stored, by_job, missing_from

FINISHED = Stored.of("v0_1", "finished", "finished_before_gates", "texts")
NEW = "new"


@pytest.fixture(params=["pods and all, soon", "records alone, after a year"])
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A cluster with what 0.1 left; nobody has the values of the secrets any more."""
    with_pods = request.param.startswith("pods")
    later = timedelta(minutes=2) if with_pods else timedelta(days=365)
    with stage(tmp_path, begin=BEGINNING + later, namespaces=NAMESPACES) as acted:
        FINISHED.restore(acted, pods=with_pods)
        acted.engine.environment.clear()
        yield acted


def test_finished_jobs_are_found_finished_as_they_were_and_nothing_is_written(
    upgraded: Stage,
) -> None:
    run = upgraded.once()
    found = by_job(run.result)
    said = {job: {**entry, "changed": False} for job, entry in FINISHED.once.items()}
    assert missing_from(found, said) == []
    assert found.keys() == said.keys()
    assert (run.result["pruned"], run.result["errors"]) == ([], [])
    status = upgraded.engine.run("status", "-A", "-o", "json")
    assert missing_from(by_job(status.result), FINISHED.status) == []
    assert upgraded.sandbox.requests.writes == []


def test_an_engine_that_stays_leaves_finished_jobs_alone_and_runs_what_is_new(
    upgraded: Stage,
) -> None:
    before = {kind: _stored_versions(upgraded, kind) for kind in ("pods", "configmaps", "secrets")}
    upgraded.engine.namespace = ""
    with EngineProcess(upgraded.engine):
        upgraded.spec(NEW, script="true\n")
        upgraded.wait_for(NEW, state="Succeeded")
    written = [
        f"{entry.verb} {entry.resource} {entry.namespace}/{entry.name}"
        for entry in upgraded.sandbox.requests.writes
        if entry.resource != "leases" and not entry.name.startswith((f"{NEW}.", f"{NEW}-"))
    ]
    assert written == []
    for kind, versions in before.items():
        assert versions.items() <= _stored_versions(upgraded, kind).items()


def _stored_versions(acted: Stage, kind: str) -> dict[str, str]:
    found: list[Object] = acted.sandbox.objects(kind)
    return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in found}
