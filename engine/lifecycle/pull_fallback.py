"""Each container's own way through its own list of pull policies.

A container that can't get its image moves on to its next policy. Every container of the same image
and policy moves with it: it would fail the same way one attempt later. The cursor isn't stored. It
is the number of the container's recorded failures, so a crash can't lose it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from operator import attrgetter

from engine.lifecycle.actions import Action, FindPullCause, RefreshPod, WriteRecord
from engine.lifecycle.record import Attempt, PullFailure
from engine.lifecycle.state import LifecycleState, Pod, uid_of
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import classify_pull, has_pull_cause, pull_errors

_FROM_NODE = ("IfNotPresent", "Never")


def images_of_nodes(attempts: Iterable[Attempt], policies: Mapping[str, str]) -> tuple[str, ...]:
    """Images whose pull failed, and that an attempt with `policies` may take from its node."""
    found = set()
    for failure in chain.from_iterable(map(attrgetter("failures"), attempts)):
        if failure.image and policies.get(failure.container) in _FROM_NODE:
            found.add(failure.image)
    return tuple(sorted(found))


def fall_back(state: LifecycleState, attempt: Attempt, pod: Pod) -> Action | None:
    """Close the attempt with the first real message of each container that failed."""
    uid, observed = uid_of(pod), state.observed
    failures: list[PullFailure] = []
    due: list[datetime] = []
    grace = timedelta(seconds=state.pull.grace)
    for trouble in pull_errors(pod):
        place, name, image = (uid, trouble.name), trouble.name, trouble.image
        message = observed.pull_causes.get(place, trouble.message)
        if not has_pull_cause(trouble) and place not in observed.pull_causes:
            return FindPullCause(attempt.pod, uid, name, image)
        end = observed.pull_failing_since.get(place, state.now) + grace
        if state.now < end:
            due.append(end)
            continue
        reason, pull_class = trouble.waiting["reason"], classify_pull(message)
        failures.append(PullFailure(name, reason, pull_class, message, image))
    if not failures:
        return state.wait(*due) if due else None
    if not state.is_fresh(uid):
        return RefreshPod(attempt.pod, uid)
    moved_along = tuple(_moved_along(state, pod, failures))
    return _close(state, attempt, tuple(failures), moved_along)


def _close(
    state: LifecycleState,
    attempt: Attempt,
    failures: tuple[PullFailure, ...],
    moved_along: tuple[PullFailure, ...],
) -> WriteRecord:
    record = state.run_record
    message = "; ".join(f"{failure.container}: {_words(failure)}" for failure in failures)
    outcome = Outcome(Reason.IMAGE_PULL_FAILED, message)
    after = record.with_attempt_closed(
        attempt, outcome, state.now, failures=(*failures, *moved_along), again=True
    )
    if all(
        failure.pull_class in state.pull.fallback_on
        and after.has_policy_left(state.job, failure.container)
        for failure in failures
    ):
        return WriteRecord(after)
    said = " | ".join(_attempt_summary(a) for a in after.attempts if a.failures)
    return WriteRecord(after.finished(Outcome(Reason.IMAGE_PULL_FAILED, said), state.now))


def _moved_along(
    state: LifecycleState, pod: Pod, failures: Iterable[PullFailure]
) -> Iterator[PullFailure]:
    """One for each container with the image and the policy of one that failed.

    One that is at the end of its list stays there: it may yet get its image.
    """
    pulls = {
        container["name"]: (container.get("image"), container.get("imagePullPolicy"))
        for field in ("initContainers", "containers")
        for container in pod["spec"].get(field) or ()
    }
    moved = {failure.container for failure in failures}
    record = state.run_record
    for failure in failures:
        for name, pull in pulls.items():
            is_same = name not in moved and pull == pulls.get(failure.container)
            if is_same and record.has_policy_left(state.job, name, more=1):
                moved.add(name)
                yield replace(failure, container=name, message="")


def _attempt_summary(attempt: Attempt) -> str:
    return ", ".join(
        f"attempt {attempt.number}, {failure.container}, "
        f"{attempt.policies.get(failure.container, 'default policy')}: {_words(failure)}"
        for failure in attempt.failures
        if failure.message
    )


def _words(failure: PullFailure) -> str:
    """The runtime's words, after the image unless they name it."""
    if failure.image in failure.message:
        return failure.message
    return f"image {failure.image}: {failure.message}"
