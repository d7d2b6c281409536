"""A container can't get its image: move it to its next pull policy, and with it all containers of
the same image and policy, which would fail of it one attempt after the other.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from engine.decide.actions import Action, FindPullCause, Wait, WriteRecord
from engine.decide.pull_cursor import has_policy_left
from engine.decide.record import Attempt, PullFailure
from engine.decide.situation import Pod, Situation, uid_of
from engine.decide.transitions import with_attempt_closed
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import PullError, classify_pull, pull_errors


def fall_back(situation: Situation, attempt: Attempt, pod: Pod) -> Action | None:
    """Close the attempt with the first real message of each container that failed."""
    troubles = list(pull_errors(pod))
    if not troubles:
        return None
    uid = uid_of(pod)
    for trouble in troubles:
        if not trouble.has_cause and (uid, trouble.container) not in situation.observed.pull_causes:
            return FindPullCause(attempt.pod, uid, trouble.container, trouble.image)
    waiting = [at for t in troubles if (at := _grace_end(situation, uid, t)) is not None]
    if len(waiting) == len(troubles):
        return Wait(min(waiting))
    failures = tuple(
        _failure(situation, uid, t) for t in troubles if _grace_end(situation, uid, t) is None
    )
    return _close(situation, attempt, failures, tuple(_moved_along(situation, pod, failures)))


def _close(
    situation: Situation,
    attempt: Attempt,
    failures: tuple[PullFailure, ...],
    moved_along: tuple[PullFailure, ...],
) -> WriteRecord:
    record = situation.run_record
    message = "; ".join(f"{failure.container}: {_words(failure)}" for failure in failures)
    outcome = Outcome(Reason.IMAGE_PULL_FAILED, message)
    after = with_attempt_closed(
        record, attempt, outcome, situation.now, failures=(*failures, *moved_along), again=True
    )
    stuck = [f for f in failures if not _may_go_on(situation, f, after.attempts)]
    if not stuck:
        return WriteRecord(after)
    said = " | ".join(_attempt_summary(a) for a in after.attempts if a.failures)
    final = Outcome(Reason.IMAGE_PULL_FAILED, said)
    ended = with_attempt_closed(after, after.attempts[-1], final, situation.now, failures=failures)
    return WriteRecord(ended.with_attempt(after.attempts[-1]))


def _may_go_on(situation: Situation, failure: PullFailure, attempts: tuple[Attempt, ...]) -> bool:
    wanted = failure.pull_class in situation.pull.fallback_on
    return wanted and has_policy_left(situation.job, failure.container, attempts)


def _failure(situation: Situation, uid: str, trouble: PullError) -> PullFailure:
    message = situation.observed.pull_causes.get((uid, trouble.container), trouble.message)
    return PullFailure(
        trouble.container, trouble.reason, classify_pull(message), message, image=trouble.image
    )


def _moved_along(
    situation: Situation, pod: Pod, failures: tuple[PullFailure, ...]
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
    attempts = situation.run_record.attempts
    for failure in failures:
        for name, pull in pulls.items():
            is_same = name not in moved and pull == pulls.get(failure.container)
            if is_same and has_policy_left(situation.job, name, attempts, more=1):
                moved.add(name)
                yield replace(failure, container=name, message="")


def _grace_end(situation: Situation, uid: str, trouble: PullError) -> datetime | None:
    """When the failure has lasted long enough to count; None if it has."""
    since = situation.observed.pull_failing_since.get((uid, trouble.container), situation.now)
    end = since + timedelta(seconds=situation.pull.grace)
    return end if situation.now < end else None


def _attempt_summary(attempt: Attempt) -> str:
    policies = attempt.policies or {}
    return ", ".join(
        f"attempt {attempt.number}, {failure.container}, "
        f"{policies.get(failure.container, 'default policy')}: {_words(failure)}"
        for failure in attempt.failures
        if failure.message
    )


def _words(failure: PullFailure) -> str:
    """The runtime's words, after the image unless they name it."""
    if failure.image in failure.message:
        return failure.message
    return f"image {failure.image}: {failure.message}"
