"""Each container's own way through its own list of pull policies.

The cursor isn't stored: it is the number of recorded failures that cost the container a policy,
so it can't point into another container's list and can't be lost in a crash.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from engine.api.model import Job

if TYPE_CHECKING:
    from engine.decide.record import Attempt

_FROM_NODE = ("IfNotPresent", "Never")


def cursor(container: str, attempts: Iterable["Attempt"]) -> int:
    """How many policies `container` has used up."""
    return sum(
        1
        for attempt in attempts
        for failure in attempt.failures
        if failure.container == container and failure.advances
    )


def policies_of_attempt(job: Job, attempts: tuple["Attempt", ...]) -> Mapping[str, str]:
    """Pull policy of every container with a list, for the attempt that comes next."""
    return {
        container: policies[min(cursor(container, attempts), len(policies) - 1)]
        for container, policies in job.policies.items()
    }


def images_of_nodes(attempts: Iterable["Attempt"], policies: Mapping[str, str]) -> tuple[str, ...]:
    """Images that could not be pulled, and that an attempt with `policies` may take from its node.

    Records of 0.1 don't name any.
    """
    failures = (failure for attempt in attempts for failure in attempt.failures)
    found = {f.image for f in failures if policies.get(f.container) in _FROM_NODE}
    return tuple(sorted(found - {""}))


def has_policy_left(
    job: Job, container: str, attempts: tuple["Attempt", ...], *, more: int = 0
) -> bool:
    """Whether `container` has another policy after those that `attempts` used up, and `more`.

    A container without a list has one policy, the cluster's default.
    """
    return cursor(container, attempts) + more < len(job.policies.get(container, ("",)))
