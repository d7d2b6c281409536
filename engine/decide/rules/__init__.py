"""The lifecycle as one pure function, and its rules, one per file, in the order of asking."""

from collections.abc import Callable

from engine.decide.actions import Action
from engine.decide.refused_record import heed_refused_record
from engine.decide.rules.close_attempt import close_attempt
from engine.decide.rules.finish_run import finish_run
from engine.decide.rules.handle_rejection import handle_rejection
from engine.decide.rules.notice_return import notice_return
from engine.decide.rules.open_gate import open_gate
from engine.decide.rules.refuse_foreign import refuse_foreign
from engine.decide.rules.reopen_attempt import reopen_attempt
from engine.decide.rules.replace_changed_run import replace_changed_run
from engine.decide.rules.resolve_unrecorded import resolve_unrecorded
from engine.decide.rules.restore_dependents import restore_dependents
from engine.decide.rules.restore_labels import poll_mislabelled, restore_labels
from engine.decide.rules.stamp_expiry import stamp_expiry
from engine.decide.rules.start_attempt import start_attempt
from engine.decide.rules.wait_for_gates import wait_for_gates
from engine.decide.rules.wait_for_pod import wait_for_pod
from engine.decide.situation import Situation

Rule = Callable[[Situation], Action | None]

RULES: tuple[Rule, ...] = (
    refuse_foreign,
    notice_return,
    restore_labels,
    replace_changed_run,
    stamp_expiry,
    finish_run,
    reopen_attempt,
    resolve_unrecorded,
    handle_rejection,
    start_attempt,
    open_gate,
    wait_for_gates,
    restore_dependents,
    close_attempt,
    wait_for_pod,
)


def decide(situation: Situation) -> Action:
    """The next step for one job: at most one write, or what to wait for.

    The first of the rules that answers wins, and the last one always does.
    """
    for rule in RULES:
        action = rule(situation)
        if action is not None:
            return poll_mislabelled(situation, heed_refused_record(situation, action))
    raise AssertionError("wait_for_pod answers everything")
