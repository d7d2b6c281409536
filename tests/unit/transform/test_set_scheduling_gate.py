from engine.transform.set_scheduling_gate import set_scheduling_gate
from tests.unit.builders import context, pod_manifest
from tests.unit.transform.support import apply

OURS, THEIRS = {"name": "jobs.engine/dependents"}, {"name": "example.com/quota"}


def test_the_engines_gate_comes_once_and_after_those_of_others() -> None:
    manifest = pod_manifest(schedulingGates=[OURS, THEIRS])
    spec = apply(set_scheduling_gate, manifest, context())["spec"]
    assert spec["schedulingGates"] == [THEIRS, OURS]
