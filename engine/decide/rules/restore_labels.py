"""The labels of a pod of ours that somebody changed are put back: watches find pods by them.

Until they are, and where they can't be, the pod is asked for by its name.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from engine.decide.actions import Action, RefreshPod, RestoreLabels, Wait
from engine.decide.situation import (
    FRESH_FOR,
    Pod,
    Situation,
    is_finished,
    is_terminating,
    name_of,
    uid_of,
)
from engine.refs import parse_pod_name
from engine.wellknown import ATTEMPT, JOB, MANAGED_BY, MANAGER, RUN, SOURCE

RESTORE_INTERVAL = timedelta(minutes=1)
"""Whatever goes on changing them is answered no more often than so."""


def restore_labels(situation: Situation) -> RestoreLabels | RefreshPod | None:
    """Only for pods of ours that something may still become of, of whichever run."""
    pod = _mislabelled(situation)
    if pod is None:
        return None
    at = situation.observed.labels_restored_at.get(uid_of(pod))
    if at is None or situation.now - at >= RESTORE_INTERVAL:
        labelled = bool(pod["metadata"].get("labels"))
        return RestoreLabels(name_of(pod), uid_of(pod), _changed(situation, pod), labelled)
    return None if situation.is_fresh(uid_of(pod)) else RefreshPod(name_of(pod), uid_of(pod))


def poll_mislabelled(situation: Situation, action: Action) -> Action:
    """`action`; a wait ends no later than a pod that no watch tells of is to be asked for."""
    pod = _mislabelled(situation) if isinstance(action, Wait) else None
    if not isinstance(action, Wait) or pod is None:
        return action
    at = situation.observed.refreshed_at.get(uid_of(pod), situation.now) + FRESH_FOR
    return replace(action, until=min(at, action.until or datetime.max.replace(tzinfo=at.tzinfo)))


def _mislabelled(situation: Situation) -> Pod | None:
    for pod in filter(situation.is_ours, situation.observed.pods):
        if _changed(situation, pod) and (is_terminating(pod) or not is_finished(pod)):
            return pod
    return None


def _changed(situation: Situation, pod: Pod) -> dict[str, str]:
    """What differs from the labels that the pod got by its name, which can't be changed."""
    parsed = parse_pod_name(name_of(pod))
    if parsed is None:
        return {}
    job, run, number = parsed
    own = {
        MANAGED_BY: MANAGER,
        JOB: job,
        RUN: run,
        ATTEMPT: str(number),
        SOURCE: situation.source,
    }
    labels = pod["metadata"].get("labels") or {}
    return {key: value for key, value in own.items() if labels.get(key) != value}
