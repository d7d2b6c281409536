"""The pod of a run that is over is told when it expires, once, by how it ended."""

from typing import Any

import pytest

from engine.lifecycle.actions import Done, StampExpiry
from engine.status.outcome import Reason
from engine.wellknown import EXPIRES_AT
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import JOB, act, finished
from tests.unit.pods import UID, ended, job_pod, running

BOTH = make_job(ttlAfterFinished={"success": "10m", "failure": "24h"})
POD = f"build-{BOTH.run}-1"


def done_pod(phase: str = "Succeeded", **annotations: str) -> dict[str, Any]:
    pod = job_pod(BOTH, phase=phase)
    pod["metadata"]["annotations"] = {"jobs.engine/ttl": "4500", **annotations}
    return pod


@pytest.mark.parametrize(
    ("reason", "phase", "at"),
    [
        (Reason.SUCCEEDED, "Succeeded", "2026-01-01T12:10:15.000Z"),
        (Reason.SCRIPT_FAILED, "Failed", "2026-01-02T12:00:15.000Z"),
        (Reason.DEADLINE_EXCEEDED, "Failed", "2026-01-02T12:00:15.000Z"),
    ],
)
def test_the_time_counts_from_the_recorded_end_and_depends_on_the_outcome(
    reason: Reason, phase: str, at: str
) -> None:
    assert act(BOTH, finished(reason, job=BOTH), done_pod(phase)) == StampExpiry(POD, UID, at)


def test_a_pod_whose_phase_has_yet_to_follow_its_end_gets_its_time_as_well() -> None:
    pod = job_pod(BOTH, ended(0), phase="Running")
    action = act(BOTH, finished(job=BOTH), pod)
    assert action == StampExpiry(POD, UID, "2026-01-01T12:10:15.000Z", annotated=False)
    going_on = job_pod(BOTH, ended(0), others={"redis": running()})
    assert not isinstance(act(BOTH, finished(job=BOTH), going_on), StampExpiry)


def test_a_pod_that_has_its_time_is_left_alone() -> None:
    pod = done_pod(**{EXPIRES_AT: "2030-01-01T00:00:00Z"})
    assert act(BOTH, finished(job=BOTH), pod) == Done()


def test_without_a_ttl_for_this_outcome_nothing_is_written() -> None:
    only = make_job(ttlAfterFinished={"failure": "24h"})
    assert act(only, finished(job=only), job_pod(only, phase="Succeeded")) == Done()
    assert act(JOB, finished(), job_pod(JOB, phase="Succeeded")) == Done()


def test_a_pod_without_annotations_gets_its_first() -> None:
    pod = done_pod()
    del pod["metadata"]["annotations"]
    action = act(BOTH, finished(job=BOTH), pod)
    assert isinstance(action, StampExpiry)
    assert action.annotated is False


def test_a_pod_that_is_being_deleted_needs_no_time() -> None:
    pod = done_pod()
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:20Z"
    assert act(BOTH, finished(job=BOTH), pod) == Done()


def test_a_pod_that_the_record_does_not_know_is_not_judged_by_it() -> None:
    pod = done_pod()
    pod["metadata"]["uid"] = "another"
    assert act(BOTH, finished(job=BOTH), pod) == Done()
