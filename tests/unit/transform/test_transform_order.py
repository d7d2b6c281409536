import copy

import pytest

from engine.refs import GATE
from engine.transform import TRANSFORMS, Transform, transform
from engine.transform.apply_pod_patch import apply_pod_patch
from engine.transform.set_active_deadline import set_active_deadline
from engine.transform.set_pull_policy import set_pull_policy
from engine.transform.set_scheduling_gate import set_scheduling_gate
from engine.transform.set_security_defaults import set_security_defaults
from tests.unit.builders import context, make_job, other_manifest, pod_manifest, render
from tests.unit.transform.support import apply


def test_the_order_is_the_designs() -> None:
    names = [step.__name__ for step in TRANSFORMS]
    wanted = [
        "apply_pod_patch", "set_names_and_labels", "set_pull_policy", "set_active_deadline",
        "set_grace_period", "set_ttl_annotation", "set_scheduling_gate", "set_security_defaults",
    ]  # fmt: skip
    assert [name for name in names if name in wanted] == wanted


def test_the_pod_patch_cant_undo_what_the_engine_relies_on() -> None:
    patch = {
        "metadata": {"name": "mine", "labels": {"app.kubernetes.io/managed-by": "me"}},
        "spec": {"activeDeadlineSeconds": None, "schedulingGates": None},
    }
    job = make_job(podPatch=patch, timeout="1h")
    pod = transform(pod_manifest(), context(job))
    assert pod["metadata"]["name"] == f"build-{job.run}-1"
    assert pod["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "engine"
    assert pod["spec"]["activeDeadlineSeconds"] == 3600
    assert pod["spec"]["schedulingGates"] == [{"name": GATE}]


def test_the_pod_patch_sets_security_that_the_defaults_then_leave_alone() -> None:
    patch = {"spec": {"containers": [{"name": "main", "securityContext": {"privileged": True}}]}}
    pod = transform(pod_manifest(), context(make_job(podPatch=patch)))
    assert pod["spec"]["containers"][0]["securityContext"] == {"privileged": True}


def test_a_rendered_job_is_transformed_without_being_changed() -> None:
    job = make_job(files={"a": "b"}, pullPolicy="Always")
    rendered = render(job)
    before = copy.deepcopy(rendered)
    known = context(job, policies={"main": "Always"})
    made = [transform(m, known) for m in (rendered.pod, *rendered.dependents)]
    assert rendered == before
    assert len({manifest["metadata"]["name"] for manifest in made}) == 1


@pytest.mark.parametrize(
    "step",
    [
        apply_pod_patch,
        set_active_deadline,
        set_pull_policy,
        set_scheduling_gate,
        set_security_defaults,
    ],
)
def test_what_is_about_pods_leaves_other_kinds_alone(step: Transform) -> None:
    known = context(policies={"main": "Always"})
    assert apply(step, other_manifest(), known) == other_manifest()
