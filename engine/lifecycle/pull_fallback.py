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

from engine.api.model import Job
from engine.lifecycle.actions import Action, FindPullCause, RefreshPod, WriteRecord, wait
from engine.lifecycle.record import Attempt, PullFailure
from engine.lifecycle.state import LifecycleState, Pod, uid_of
from engine.status.containers import ContainerState
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import classify_pull, has_pull_cause, pull_errors

_FROM_NODE = ("IfNotPresent", "Never")


def cursor(container: str, attempts: Iterable[Attempt]) -> int:
    """How many policies `container` has used up."""
    return sum(
        1 for attempt in attempts for failure in attempt.failures if failure.container == container
    )


def policies_of_attempt(job: Job, attempts: tuple[Attempt, ...]) -> Mapping[str, str]:
    """Pull policy of every container with a list, for the attempt that comes next."""
    return {
        container: policies[min(cursor(container, attempts), len(policies) - 1)]
        for container, policies in job.policies.items()
    }


def images_of_nodes(attempts: Iterable[Attempt], policies: Mapping[str, str]) -> tuple[str, ...]:
    """Images whose pull failed, and that an attempt with `policies` may take from its node."""
    found = set()
    for failure in chain.from_iterable(map(attrgetter("failures"), attempts)):
        if failure.image and policies.get(failure.container) in _FROM_NODE:
            found.add(failure.image)
    return tuple(sorted(found))


def has_policy_left(
    job: Job, container: str, attempts: tuple[Attempt, ...], *, more: int = 0
) -> bool:
    """Whether `container` has another policy after those that `attempts` used up, and `more`.

    A container without a list has one policy, the cluster's default.
    """
    return cursor(container, attempts) + more < len(job.policies.get(container, ("",)))


def fall_back(state: LifecycleState, attempt: Attempt, pod: Pod) -> Action | None:
    """Close the attempt with the first real message of each container that failed."""
    troubles = list(pull_errors(pod))
    if not troubles:
        return None
    uid = uid_of(pod)
    for trouble in troubles:
        if not has_pull_cause(trouble) and (uid, trouble.name) not in state.observed.pull_causes:
            return FindPullCause(attempt.pod, uid, trouble.name, trouble.image)
    waiting = [at for t in troubles if (at := _grace_end(state, uid, t)) is not None]
    if len(waiting) == len(troubles):
        return wait(state, *waiting)
    if not state.is_fresh(uid):
        return RefreshPod(attempt.pod, uid)
    failures = tuple(_failure(state, uid, t) for t in troubles if _grace_end(state, uid, t) is None)
    return _close(state, attempt, failures, tuple(_moved_along(state, pod, failures)))


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
        and has_policy_left(state.job, failure.container, after.attempts)
        for failure in failures
    ):
        return WriteRecord(after)
    said = " | ".join(_attempt_summary(a) for a in after.attempts if a.failures)
    final = Outcome(Reason.IMAGE_PULL_FAILED, said)
    ended = after.with_attempt_closed(after.attempts[-1], final, state.now, failures=failures)
    return WriteRecord(ended.with_attempt(after.attempts[-1]))


def _failure(state: LifecycleState, uid: str, trouble: ContainerState) -> PullFailure:
    message = state.observed.pull_causes.get((uid, trouble.name), trouble.message)
    reason = trouble.waiting["reason"]
    return PullFailure(trouble.name, reason, classify_pull(message), message, trouble.image)


def _moved_along(
    state: LifecycleState, pod: Pod, failures: tuple[PullFailure, ...]
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
    attempts = state.run_record.attempts
    for failure in failures:
        for name, pull in pulls.items():
            is_same = name not in moved and pull == pulls.get(failure.container)
            if is_same and has_policy_left(state.job, name, attempts, more=1):
                moved.add(name)
                yield replace(failure, container=name, message="")


def _grace_end(state: LifecycleState, uid: str, trouble: ContainerState) -> datetime | None:
    """When the failure has lasted long enough to count; None if it has."""
    since = state.observed.pull_failing_since.get((uid, trouble.name), state.now)
    end = since + timedelta(seconds=state.pull.grace)
    return end if state.now < end else None


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
