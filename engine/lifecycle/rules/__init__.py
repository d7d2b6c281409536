"""The lifecycle as one pure function, and its rules, one per file, in the order of asking."""

from collections.abc import Callable

from engine.lifecycle.actions import Action
from engine.lifecycle.rules.close_attempt import close_attempt
from engine.lifecycle.rules.close_stuck import close_stuck
from engine.lifecycle.rules.finish_run import finish_run
from engine.lifecycle.rules.follow_spec import follow_spec
from engine.lifecycle.rules.handle_rejected_record import handle_rejected_record
from engine.lifecycle.rules.handle_rejection import handle_rejection
from engine.lifecycle.rules.open_gate import open_gate
from engine.lifecycle.rules.recheck_unlabelled import recheck_unlabelled
from engine.lifecycle.rules.refuse_foreign import refuse_foreign
from engine.lifecycle.rules.reopen_attempt import reopen_attempt
from engine.lifecycle.rules.replace_changed_run import replace_changed_run
from engine.lifecycle.rules.report_superseded import report_superseded
from engine.lifecycle.rules.resolve_unrecorded import resolve_unrecorded
from engine.lifecycle.rules.restore_dependents import restore_dependents
from engine.lifecycle.rules.start_attempt import start_attempt
from engine.lifecycle.rules.update_pod import update_pod
from engine.lifecycle.rules.wait_for_dependencies import wait_for_dependencies
from engine.lifecycle.rules.wait_for_pod import wait_for_pod
from engine.lifecycle.state import LifecycleState

Rule = Callable[[LifecycleState], Action | None]

RULES: tuple[Rule, ...] = (
    refuse_foreign,
    recheck_unlabelled,
    report_superseded,
    handle_rejected_record,
    follow_spec,
    replace_changed_run,
    wait_for_dependencies,
    finish_run,
    reopen_attempt,
    resolve_unrecorded,
    handle_rejection,
    start_attempt,
    close_attempt,
    open_gate,
    restore_dependents,
    close_stuck,
    update_pod,
    wait_for_pod,
)


def decide(state: LifecycleState) -> Action:
    """The next step for one job: at most one write, or what to wait for.

    The first of the rules that answers wins, and the last one always does.
    """
    actions = (rule(state) for rule in RULES)
    return next(action for action in actions if action is not None)
