"""What each standard says of every field that it names, offline."""

from engine.podsecurity import CONTROLS, Level, controls_of, evaluate
from tests.support.pod_security import REASONS, cases, ephemeral_cases, restricted_pod

CASES = (*cases(), *ephemeral_cases())


def test_the_verdict_is_that_of_the_standards() -> None:
    assert verdicts(Level.BASELINE) == {case.name: case.baseline for case in CASES}
    assert verdicts(Level.RESTRICTED) == {case.name: case.restricted for case in CASES}
    assert not any(verdicts(Level.PRIVILEGED).values())


def verdicts(level: Level) -> dict[str, set[str]]:
    return {case.name: {found.name for found, _ in evaluate(level, case.pod)} for case in CASES}


def test_every_control_of_both_standards_has_cases_that_it_forbids() -> None:
    names = {control.name for control in CONTROLS}
    assert names == REASONS.keys()
    assert {name for case in CASES for name in case.baseline | case.restricted} >= names - {
        "procMount"
    }


def test_the_mask_over_proc_may_only_go_in_a_user_namespace() -> None:
    """No API server takes a pod that shows it, so that it isn't among the cases."""
    pod = restricted_pod()
    pod["spec"]["containers"][0]["securityContext"]["procMount"] = "Unmasked"
    (found,) = evaluate(Level.BASELINE, pod)
    assert found[0].name == "procMount"
    assert found[1].path == ("spec", "containers", 0, "securityContext", "procMount")


def test_a_control_that_another_one_replaces_is_not_told_twice() -> None:
    names = [control.name for control in controls_of(Level.RESTRICTED)]
    assert "capabilities_restricted" in names
    assert "capabilities_baseline" not in names
    assert len(names) == len(set(names)) == len(CONTROLS) - 4


def test_a_violation_names_the_field_and_what_it_must_be() -> None:
    pod = restricted_pod()
    del pod["spec"]["securityContext"]["runAsNonRoot"]
    pod["spec"]["initContainers"][0]["securityContext"]["capabilities"]["add"] = ["SYS_TIME"]
    found = [
        (violation.path, violation.message) for _, violation in evaluate(Level.RESTRICTED, pod)
    ]
    assert found == [
        (
            ("spec", "initContainers", 0, "securityContext", "capabilities", "add", 0),
            "must be NET_BIND_SERVICE",
        ),
        (
            ("spec", "securityContext", "runAsNonRoot"),
            "must be true, or that of each container",
        ),
    ]
