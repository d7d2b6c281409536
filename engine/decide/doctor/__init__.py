"""What is wrong between the engine and a cluster: facts in, findings out."""

from collections.abc import Callable, Iterator

from engine.decide.doctor.cluster import check_clock, check_reach, check_version
from engine.decide.doctor.facts import Facts, Finding, Level
from engine.decide.doctor.namespace import (
    check_lease,
    check_limit_ranges,
    check_namespace,
    check_pod_security,
    check_quotas,
    check_registry_secrets,
)
from engine.decide.doctor.rights import check_rights

Check = Callable[[Facts], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    check_reach,
    check_version,
    check_clock,
    check_namespace,
    check_rights,
    check_quotas,
    check_limit_ranges,
    check_pod_security,
    check_registry_secrets,
    check_lease,
)


def diagnose(facts: Facts) -> list[Finding]:
    """Every finding, in the order of the checks."""
    return [finding for check in CHECKS for finding in check(facts)]


__all__ = ["CHECKS", "Facts", "Finding", "Level", "diagnose"]
