"""Somebody changes labels of a pod that runs: it is read by its name, and the job goes on."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.lifecycle.actions import RefreshPod, Wait
from engine.lifecycle.state import changed_labels
from engine.status.outcome import State
from tests.unit.lifecycle.states import JOB, act, at, attempt, record, written
from tests.unit.pods import UID, ended, job_pod, running

POD = f"build-{JOB.run}-1"
LABELS = (
    "app.kubernetes.io/managed-by",
    "jobs.engine/job",
    "jobs.engine/run",
    "jobs.engine/attempt",
    "jobs.engine/source",
)
KNOWN = replace(record(attempt()), state=State.RUNNING)
CHANGED = job_pod(JOB, running(), labels={"jobs.engine/run": "ffffffff"})


@pytest.mark.parametrize("label", LABELS)
def test_a_pod_whose_label_was_changed_or_removed_is_read_every_ten_seconds(label: str) -> None:
    pod = job_pod(JOB, running(), labels={label: "x"})
    assert changed_labels(pod, "default") == (label,)
    assert act(JOB, KNOWN, pod) == Wait(at(10))
    del pod["metadata"]["labels"][label]
    assert act(JOB, KNOWN, pod, asked={}) == RefreshPod(POD, UID)


def test_a_pod_without_any_label_is_read_too() -> None:
    pod = job_pod(JOB, running())
    del pod["metadata"]["labels"]
    assert changed_labels(pod, "default") == LABELS
    assert act(JOB, KNOWN, pod, asked={UID: at(-4)}) == Wait(at(6))
    assert act(JOB, KNOWN, pod, asked={UID: at(-10)}) == RefreshPod(POD, UID)


def test_labels_of_others_are_theirs() -> None:
    assert act(JOB, KNOWN, job_pod(JOB, running(), labels={"team": "web"})) == Wait()


def test_such_a_pod_is_seen_through_to_its_end() -> None:
    over = job_pod(JOB, ended(0), phase="Succeeded", labels={"jobs.engine/job": "x"})
    assert written(JOB, KNOWN, over).state is State.SUCCEEDED
    dying = job_pod(JOB, running(), deleted="2026-01-01T12:00:40Z", labels={"jobs.engine/job": "x"})
    assert act(JOB, KNOWN, dying) == Wait(at(10))


def test_one_that_has_ended_and_is_being_deleted_is_kept_in_sight() -> None:
    going: dict[str, Any] = {"deleted": "2026-01-01T12:00:40Z", "labels": {"jobs.engine/job": "x"}}
    pod = job_pod(JOB, ended(0), phase="Succeeded", **going)
    assert act(JOB, KNOWN, pod, asked={}) == RefreshPod(POD, UID)


def test_a_changed_spec_meets_the_old_pod_whatever_its_labels_say() -> None:
    new = replace(JOB, spec_hash="f" * 64)
    assert act(new, KNOWN, CHANGED, asked={}) == RefreshPod(POD, UID)
    assert written(new, KNOWN, CHANGED).state is State.CANCELLED
