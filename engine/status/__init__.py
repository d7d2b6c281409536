"""What a pod's status says: one reading per file, the outcome rules in one visible tuple.

A reading is pure, takes a pod as the API returned it, and knows nothing of jobs or records.
"""

from collections.abc import Callable
from typing import Any

from engine.status.container_end import read_failed_pod, read_main_container
from engine.status.deadline import read_deadline
from engine.status.disruption import read_disruption
from engine.status.outcome import Outcome

OutcomeRule = Callable[[dict[str, Any]], Outcome | None]

OUTCOME_RULES: tuple[OutcomeRule, ...] = (
    read_deadline,
    read_disruption,
    read_main_container,
    read_failed_pod,
)


def read_outcome(pod: dict[str, Any]) -> Outcome | None:
    """How the pod ended, by the first rule that knows; None while it has not."""
    return next((found for rule in OUTCOME_RULES if (found := rule(pod)) is not None), None)
