from engine.transform.set_scheduling_gate import set_scheduling_gate
from tests.unit.builders import context, other_manifest, pod_manifest
from tests.unit.transform.support import apply

OURS = {"name": "jobs.engine/dependents"}


def test_the_pod_is_held_back_by_the_engines_gate() -> None:
    assert apply(set_scheduling_gate, pod_manifest(), context())["spec"]["schedulingGates"] == [
        OURS
    ]


def test_gates_of_others_stay_before_ours() -> None:
    theirs = {"name": "example.com/quota"}
    manifest = pod_manifest(schedulingGates=[OURS, theirs])
    spec = apply(set_scheduling_gate, manifest, context())["spec"]
    assert spec["schedulingGates"] == [theirs, OURS]


def test_other_kinds_have_no_gate() -> None:
    assert apply(set_scheduling_gate, other_manifest(), context()) == other_manifest()
