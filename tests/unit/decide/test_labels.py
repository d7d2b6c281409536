"""Somebody changes labels of a pod that runs: they are put back, and the job goes on."""

from dataclasses import replace
from typing import Any

import pytest

from engine.decide.actions import RefreshPod, RestoreLabels, Wait
from engine.status.outcome import State
from tests.unit.decide.situations import JOB, NOW, act, at, attempt, record, written
from tests.unit.pods import UID, ended, job_pod, running

POD = f"build-{JOB.run}-1"
OWN = {
    "app.kubernetes.io/managed-by": "engine",
    "jobs.engine/job": "build",
    "jobs.engine/run": JOB.run,
    "jobs.engine/attempt": "1",
    "jobs.engine/source": "default",
}
KNOWN = replace(record(attempt()), state=State.RUNNING)
CHANGED = job_pod(JOB, running(), labels={"jobs.engine/run": "ffffffff"})


@pytest.mark.parametrize("label", OWN)
def test_a_label_that_was_changed_or_removed_is_put_back(label: str) -> None:
    restore = RestoreLabels(POD, UID, {label: OWN[label]})
    assert act(JOB, KNOWN, job_pod(JOB, running(), labels={label: "x"})) == restore
    pod = job_pod(JOB, running())
    del pod["metadata"]["labels"][label]
    assert act(JOB, KNOWN, pod) == restore


def test_a_pod_without_any_label_gets_all_of_them() -> None:
    pod = job_pod(JOB, running())
    del pod["metadata"]["labels"]
    assert act(JOB, KNOWN, pod) == RestoreLabels(POD, UID, OWN, labelled=False)


def test_labels_of_others_are_theirs() -> None:
    assert act(JOB, KNOWN, job_pod(JOB, running(), labels={"team": "web"})) == Wait()


def test_labels_that_can_not_be_put_back_are_tried_once_a_minute_and_the_pod_is_polled() -> None:
    """No watch tells of it, perhaps."""
    assert act(JOB, KNOWN, CHANGED, restored={UID: NOW}) == Wait(at(10))
    tried = {"restored": {UID: at(-10)}}
    assert act(JOB, KNOWN, CHANGED, asked={UID: at(-10)}, **tried) == RefreshPod(POD, UID)
    assert act(JOB, KNOWN, CHANGED, asked={UID: at(-4)}, **tried) == Wait(at(6))
    assert isinstance(act(JOB, KNOWN, CHANGED, restored={UID: at(-60)}), RestoreLabels)


def test_such_a_pod_is_seen_through_to_its_end() -> None:
    over = job_pod(JOB, ended(0), phase="Succeeded", labels={"jobs.engine/job": "x"})
    assert written(JOB, KNOWN, over, restored={UID: NOW}).state is State.SUCCEEDED
    dying = job_pod(JOB, running(), deleted="2026-01-01T12:00:40Z", labels={"jobs.engine/job": "x"})
    assert act(JOB, KNOWN, dying, restored={UID: NOW}) == Wait(at(10))


def test_one_that_has_ended_and_is_being_deleted_is_kept_in_sight() -> None:
    going: dict[str, Any] = {"deleted": "2026-01-01T12:00:40Z", "labels": {"jobs.engine/job": "x"}}
    assert isinstance(
        act(JOB, KNOWN, job_pod(JOB, ended(0), phase="Succeeded", **going)), RestoreLabels
    )


def test_a_changed_spec_meets_the_old_pod_whatever_its_labels_say() -> None:
    new = replace(JOB, spec_hash="f" * 64)
    assert isinstance(act(new, KNOWN, CHANGED), RestoreLabels)
    assert written(new, KNOWN, CHANGED, restored={UID: NOW}).state is State.CANCELLED
