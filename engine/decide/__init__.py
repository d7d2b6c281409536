"""The whole lifecycle as one pure function: `decide(situation) -> action`.

Rules stand one per file in `RULES`; the first that answers wins, and the last one always does.
"""

from collections.abc import Callable

from engine.decide.actions import Action
from engine.decide.close_attempt import close_attempt
from engine.decide.finish_run import finish_run
from engine.decide.open_gate import open_gate
from engine.decide.refuse_foreign import refuse_foreign
from engine.decide.reopen_attempt import reopen_attempt
from engine.decide.repair_drift import repair_drift
from engine.decide.replace_changed_run import replace_changed_run
from engine.decide.settle_refusal import settle_refusal
from engine.decide.situation import Situation
from engine.decide.stamp_expiry import stamp_expiry
from engine.decide.start_attempt import start_attempt
from engine.decide.wait_for_pod import wait_for_pod

Rule = Callable[[Situation], Action | None]

RULES: tuple[Rule, ...] = (
    refuse_foreign,
    replace_changed_run,
    stamp_expiry,
    finish_run,
    reopen_attempt,
    settle_refusal,
    start_attempt,
    open_gate,
    repair_drift,
    close_attempt,
    wait_for_pod,
)


def decide(situation: Situation) -> Action:
    """The next step for one job: at most one write, or what to wait for."""
    for rule in RULES:
        action = rule(situation)
        if action is not None:
            return action
    raise AssertionError("wait_for_pod answers everything")
