"""How a deleted pod ended: the states that a watch delivers of it, and what may be missing."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from engine.status.deletion import UNSEEN, Deletion, read_deleted, read_end
from engine.status.outcome import Outcome, Reason
from tests.unit.pods import container, ended, pod, running, waiting

ASKED = "2026-01-01T12:00:40Z"
BEFORE = "2026-01-01T12:00:30Z"
GRACES = [0, 1, 5, 30]
EVICTION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}

States = list[dict[str, Any]]


def later(text: str, seconds: float) -> str:
    at = datetime.fromisoformat(text) + timedelta(seconds=seconds)
    return at.isoformat().replace("+00:00", "Z")


def deleting(state: dict[str, Any], grace: int, at: str, **more: Any) -> dict[str, Any]:
    """A state of the pod that is being deleted."""
    metadata = {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace}
    return pod(state, metadata={**metadata, "generation": 3}, **more)


def alive(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return pod(state, metadata={"generation": 2}, observedGeneration=2, **more)


def stopped(grace: int, code: int, after: float, **more: Any) -> States:
    """As 1.36 tells it: asked for at ASKED, the container ends `after` seconds, the pod goes."""
    mark = later(ASKED, grace)
    end = ended(code, at=later(ASKED, after))
    phase = "Failed" if code else "Succeeded"
    last = later(ASKED, after + 1)
    return [
        alive(running(), **more),
        deleting(running(), grace, mark, observedGeneration=2, **more),
        deleting(running(), grace, mark, observedGeneration=3, **more),
        deleting(end, grace, mark, phase=phase, observedGeneration=3, **more),
        deleting(end, 0, last, phase=phase, observedGeneration=3, **more),
    ]


def forced(state: dict[str, Any], **more: Any) -> States:
    """With a grace of 0: the object goes at once, whatever the kubelet knows."""
    return [
        alive(state, **more),
        deleting(state, 0, ASKED, observedGeneration=2, **more),
    ]


def over(states: Sequence[dict[str, Any]]) -> Outcome | None:
    """What is known at the end to who has seen all of `states`, in this order."""
    deletion, last = UNSEEN, None
    for state in states:
        deletion, last = deletion.seen(state, last), state
    assert last is not None
    return read_deleted(last, deletion, gone=True)


def reason(states: Sequence[dict[str, Any]]) -> Reason:
    """PodDeleted is what remains when nothing else is told."""
    outcome = over(states)
    return outcome.reason if outcome else Reason.POD_DELETED


VIEWS: dict[str, Callable[[States], States]] = {
    "everything": lambda states: states,
    "all but the first": lambda states: states[1:],
    "only DELETED": lambda states: states[-1:],
    "the list before and DELETED": lambda states: [states[0], states[-1]],
    "the list before and no more": lambda states: states[:1],
    "the last list, then it was missing": lambda states: states[:-1],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("code", "after"), [(137, 0), (137, 1), (143, 0), (143, 1), (1, 0), (3, 1)]
)
@pytest.mark.parametrize("grace", GRACES[1:])
def test_a_container_that_dies_of_a_deletion_has_not_failed(
    grace: int, code: int, after: int, view: str
) -> None:
    assert reason(VIEWS[view](stopped(grace, code, after))) is Reason.POD_DELETED


@pytest.mark.parametrize("view", VIEWS)
def test_nor_has_one_that_was_killed_at_the_end_of_its_grace(view: str) -> None:
    for grace in GRACES[1:]:
        assert reason(VIEWS[view](stopped(grace, 137, grace))) is Reason.POD_DELETED


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "the list before and no more"])
@pytest.mark.parametrize("grace", GRACES[1:])
def test_a_container_that_ends_with_0_has_succeeded_on_term_too(grace: int, view: str) -> None:
    assert reason(VIEWS[view](stopped(grace, 0, 1))) is Reason.SUCCEEDED


@pytest.mark.parametrize("view", VIEWS)
def test_a_forced_deletion_of_what_runs_is_a_deletion(view: str) -> None:
    assert reason(VIEWS[view](forced(running()))) is Reason.POD_DELETED


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("at", [BEFORE, ASKED])
def test_what_had_ended_before_a_forced_deletion_tells_its_own_end(view: str, at: str) -> None:
    """A finished pod is deleted with a grace of 0 as well, whatever was asked for."""
    for phase in ("Running", "Failed"):
        states = forced(ended(1, at=at), phase=phase)
        assert reason(VIEWS[view](states)) is Reason.SCRIPT_FAILED


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "only DELETED"])
@pytest.mark.parametrize("grace", GRACES[1:])
def test_what_ended_by_itself_a_moment_before_the_deletion_has_failed(
    grace: int, view: str
) -> None:
    """Its phase was still Running, so the deletion got its grace."""
    end, mark = ended(1, at=BEFORE), later(ASKED, grace)
    states = [
        alive(end),
        deleting(end, grace, mark, observedGeneration=2),
        deleting(end, grace, mark, phase="Failed", observedGeneration=3),
        deleting(end, 0, later(ASKED, 1), phase="Failed", observedGeneration=3),
    ]
    assert reason(VIEWS[view](states)) is Reason.SCRIPT_FAILED


def test_of_two_things_in_one_second_the_deletion_counts_unless_the_end_was_seen_first() -> None:
    end, mark = ended(1, at=ASKED), later(ASKED, 30)
    unseen = [alive(running()), deleting(end, 30, mark, observedGeneration=3)]
    assert reason(unseen) is Reason.POD_DELETED
    assert reason([alive(end), *unseen[1:]]) is Reason.SCRIPT_FAILED


def test_a_grace_that_was_shortened_does_not_make_the_deletion_younger() -> None:
    """Asked for with 30 s; with 1 s ten seconds later, by when that had passed."""
    end = ended(143, at=later(ASKED, 5))
    states = [
        deleting(running(), 30, later(ASKED, 30), observedGeneration=3),
        deleting(end, 1, later(ASKED, 10), observedGeneration=3),
    ]
    assert reason(states) is Reason.POD_DELETED


def test_the_order_in_which_states_are_seen_does_not_matter() -> None:
    end = ended(143, at=later(ASKED, 5))
    older = deleting(running(), 30, later(ASKED, 30))
    newer = deleting(end, 0, later(ASKED, 6), observedGeneration=3)
    deletion = UNSEEN.seen(newer).seen(older, newer)
    assert deletion == UNSEEN.seen(older).seen(newer, older)
    assert read_deleted(newer, deletion, gone=True) is None


@pytest.mark.parametrize("code", [137, 143, 3])
@pytest.mark.parametrize("grace", GRACES[1:])
def test_while_it_is_still_there_it_is_judged_by_the_same_rule(grace: int, code: int) -> None:
    deletion = Deletion()
    last = None
    for state in stopped(grace, code, 1):
        deletion = deletion.seen(state, last)
        assert read_end(state, deletion) is None
        last = state


def test_without_a_deletion_the_end_is_the_end() -> None:
    gone = read_deleted(pod(ended(3), phase="Failed"), gone=True)
    assert gone is not None
    assert gone.reason is Reason.SCRIPT_FAILED
    assert read_end(pod(ended(3), phase="Failed")) == gone
    assert read_end(pod(running())) is None


def test_a_server_that_counts_no_generations_leaves_the_times() -> None:
    """Before 1.34; nothing says whether the kubelet knew of the deletion."""
    end, metadata = ended(1, at=BEFORE), {"deletionTimestamp": ASKED}
    assert read_deleted(pod(end, metadata=metadata, phase="Failed"), gone=True) is None
    asked = {**metadata, "deletionGracePeriodSeconds": 5}
    outcome = read_deleted(pod(end, metadata=asked, phase="Failed"), gone=True)
    assert outcome is not None
    assert outcome.reason is Reason.SCRIPT_FAILED


def test_out_of_memory_and_a_passed_deadline_stay_what_they_were_before_the_deletion() -> None:
    killed = ended(137, "OOMKilled", at=BEFORE)
    assert reason(forced(killed, phase="Failed")) is Reason.OOM_KILLED
    late = {"phase": "Failed", "reason": "DeadlineExceeded", "spec": {"activeDeadlineSeconds": 5}}
    assert reason(forced(running(), **late)) is Reason.DEADLINE_EXCEEDED
    assert reason(forced(running(), **late)[-1:]) is Reason.DEADLINE_EXCEEDED


def test_a_container_that_runs_out_of_memory_while_it_is_stopped_was_deleted() -> None:
    end = ended(137, "OOMKilled", at=later(ASKED, 2))
    states = [*stopped(30, 137, 2)[:3], deleting(end, 30, later(ASKED, 30), observedGeneration=3)]
    assert reason(states) is Reason.POD_DELETED


def test_an_init_container_that_dies_of_the_deletion_has_not_failed_either() -> None:
    """One that had failed before has."""
    for at, expected in ((later(ASKED, 1), Reason.POD_DELETED), (BEFORE, Reason.SCRIPT_FAILED)):
        metadata = {"deletionTimestamp": later(ASKED, 30), "deletionGracePeriodSeconds": 30}
        state = pod(init={"setup": ended(137, at=at)}, metadata=metadata, phase="Failed")
        assert reason([state]) is expected


def test_a_container_that_the_kubelet_could_not_find_any_more_was_deleted() -> None:
    lost = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": None}}
    state = deleting(lost, 30, later(ASKED, 30), phase="Failed", observedGeneration=3)
    assert reason([state]) is Reason.POD_DELETED


# Evictions and lost nodes


def test_an_evicted_pod_that_was_deleted_before_anybody_looked_was_evicted() -> None:
    """Its main container was killed for the eviction: that is not the script's failure."""
    gone = pod(ended(137), phase="Failed", reason="Evicted", message="low on memory")
    outcome = read_deleted(gone, gone=True)
    assert outcome is not None
    assert (outcome.reason, outcome.message) == (Reason.EVICTED, "low on memory")


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "the list before and no more"])
@pytest.mark.parametrize("code", [137, 143, 3])
def test_what_the_cluster_announced_is_the_end_of_an_evicted_pod(code: int, view: str) -> None:
    states = [alive(running()), *stopped(30, code, 1, conditions=[EVICTION])[1:]]
    outcome = over(VIEWS[view](states))
    assert outcome is not None
    assert (outcome.reason, outcome.message) == (Reason.EVICTED, "Eviction API: evicting")


def test_an_eviction_is_no_more_than_announced_while_the_container_runs() -> None:
    """It may still end with 0."""
    states = stopped(30, 0, 1, conditions=[EVICTION])
    assert [read_end(state) for state in states[:3]] == [None, None, None]
    assert reason(states) is Reason.SUCCEEDED
    assert read_end(stopped(30, 143, 1, conditions=[EVICTION])[3]) == Outcome(
        Reason.EVICTED, "Eviction API: evicting", 143
    )


def test_a_lost_node_is_believed_at_once() -> None:
    lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    outcome = read_end(deleting(running(), 30, later(ASKED, 30), conditions=[lost]))
    assert outcome is not None
    assert outcome.reason is Reason.NODE_LOST


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (running(), "; its containers may still run on node n"),
        (waiting("ContainerCreating"), "; its containers may still run on node n"),
        (ended(137, at=later(ASKED, 5)), ""),
    ],
    ids=["running", "starting", "ended"],
)
def test_of_a_lost_node_it_is_told_what_may_still_run_there(
    state: dict[str, Any], more: str
) -> None:
    lost = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    }
    going = deleting(state, 30, later(ASKED, 30), conditions=[lost])
    outcome = read_end({**going, "spec": {**going.get("spec", {}), "nodeName": "n"}})
    assert outcome is not None
    assert outcome.message == f"{lost['message']}{more}"


def test_a_service_that_is_stopped_first_is_not_the_end() -> None:
    state = deleting(running(), 30, later(ASKED, 30))
    state["status"]["containerStatuses"].append(container("redis", ended(137, at=BEFORE)))
    assert read_end(state) is None
