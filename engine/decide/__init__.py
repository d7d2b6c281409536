"""The whole lifecycle as one pure function: `decide(situation) -> action`."""

from engine.decide.actions import Action
from engine.decide.refused_record import heed_refused_record
from engine.decide.rules import RULES
from engine.decide.rules.restore_labels import poll_mislabelled
from engine.decide.situation import Situation


def decide(situation: Situation) -> Action:
    """The next step for one job: at most one write, or what to wait for.

    The first of the rules that answers wins, and the last one always does.
    """
    for rule in RULES:
        action = rule(situation)
        if action is not None:
            return poll_mislabelled(situation, heed_refused_record(situation, action))
    raise AssertionError("wait_for_pod answers everything")
