from dataclasses import replace

from engine.decide.actions import RejectForeign
from tests.unit.decide.situations import JOB, act, attempt, finished, record
from tests.unit.pods import job_pod, running


def test_a_record_of_another_source_is_refused_by_name() -> None:
    theirs = replace(record(attempt()), source="nightly")
    assert act(JOB, theirs) == RejectForeign(
        "job ci/build belongs to source 'nightly', not to 'default'"
    )


def test_even_a_finished_job_of_another_source_is_left_alone() -> None:
    assert isinstance(act(JOB, replace(finished(), source="nightly")), RejectForeign)


def test_a_pod_of_another_source_is_refused_by_name() -> None:
    theirs = job_pod(JOB, running(), labels={"jobs.engine/source": "nightly"})
    action = act(JOB, None, theirs)
    name = theirs["metadata"]["name"]
    assert action == RejectForeign(f"pod {name} belongs to source 'nightly', not to 'default'")


def test_a_pod_of_nobody_is_refused() -> None:
    pod = job_pod(JOB, running(), labels={"app.kubernetes.io/managed-by": "helm"})
    action = act(JOB, None, pod)
    assert action == RejectForeign(f"pod {pod['metadata']['name']} is not one of the engine's")
