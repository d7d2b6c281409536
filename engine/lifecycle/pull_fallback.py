"""Each container's own way through its own list of pull policies.

A container that can't get its image moves on to its next policy at once. Every container of the
same image and policy moves with it: it would fail the same way one attempt later. The cursor isn't
stored. It is the number of the container's recorded failures, so a crash can't lose it.

On its last policy a container gives up slowly where the registry is away: the kubelet goes on
trying, with its own back-off, until `pull.patience` is over. An attempt with the policy of the one
before waits, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, groupby
from operator import attrgetter, itemgetter

from msgspec.structs import replace

from engine.api.model import PullClass
from engine.lifecycle.actions import Action, FindPullCause, RefreshPod, WriteRecord
from engine.lifecycle.record import Attempt, PullFailure, Record
from engine.lifecycle.retry import close_or_retry, retry_time
from engine.lifecycle.state import LifecycleState, policies_of
from engine.refs import pod_name
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import classify_pull, has_pull_cause, pull_errors

Pulls = Mapping[str, tuple[str | None, str | None]]
"""Image and policy of each container."""
_FROM_NODE = ("IfNotPresent", "Never")
_KEPT_FROM_POD = (
    "; node {} has the image, but since Kubernetes 1.35 the kubelet keeps it from a pod whose pull "
    "Secret is neither the one that pulled it nor equal to it. Use a Secret that stays "
    "(registryCredentials with fromSecret), or the service account's credentials"
)


def images_of_nodes(attempts: Iterable[Attempt], policies: Mapping[str, str]) -> tuple[str, ...]:
    """Images whose pull failed, and that an attempt with `policies` may take from its node."""
    failures = chain.from_iterable(map(attrgetter("failures"), attempts))
    there = (one.image for one in failures if policies.get(one.container) in _FROM_NODE)
    return tuple(sorted({*filter(None, there)}))


def fall_back(state: LifecycleState, latest: datetime | None) -> Action | None:
    """Close the attempt with the first real message of each container that failed, or wait.

    `latest` is when the pod has to have started; None where it has begun its work.
    """
    attempt, pod, observed = state.attempt, state.pod, state.observed
    uid = attempt.uid
    failures: list[PullFailure] = []
    waiting: list[PullFailure] = []
    for trouble in pull_errors(pod):
        place, name, image = (uid, trouble.name), trouble.name, trouble.image
        is_known = has_pull_cause(trouble) or place in observed.pull_causes
        node = pod["spec"].get("nodeName", "") if policies_of(pod).get(name) in _FROM_NODE else ""
        if not is_known or (node and (uid, image) not in observed.cached_images):
            return FindPullCause(attempt.pod, uid, name, image, node)
        message = observed.pull_causes.get(place, trouble.message)
        reason, pull_class = trouble.waiting["reason"], classify_pull(message)
        if node and observed.cached_images[uid, image]:
            message += _KEPT_FROM_POD.format(node)
        failure = PullFailure(name, reason, pull_class, message, image)
        is_last = not _falls_back(state, failure, state.run_record, more=1)
        may_wait = is_last and pull_class is PullClass.TRANSIENT
        (waiting if may_wait else failures).append(failure)
    if not failures:
        patience = timedelta(seconds=state.pull.patience)
        until = attempt.gives_up_at or min(filter(None, (state.now + patience, latest)))
        if waiting and state.now < until:
            return _wait_for_registry(state, waiting, until)
        failures = waiting
    if not failures:
        return _wait_for_registry(state, (), None) if attempt.gives_up_at else None
    if not state.is_fresh(uid):
        return RefreshPod(attempt.pod, uid)
    pulls = {
        container["name"]: (container.get("image"), container.get("imagePullPolicy"))
        for field in ("initContainers", "containers")
        for container in pod["spec"].get(field) or ()
    }
    return _close(state, attempt, failures, pulls)


def fall_back_without_pod(state: LifecycleState) -> WriteRecord:
    """Close an attempt that was never begun, by how another job failed to pull the same image."""
    record, job, holds = state.run_record, state.job, state.observed.image_holds
    number, policies = record.next_number, {**record.next_policies(job)}
    pulls = {hold.container: (hold.image, hold.policy) for hold in holds}
    failures: dict[tuple[str, str], PullFailure] = {}
    for hold in holds:
        policies[hold.container] = hold.policy
        if hold.failure is not None:
            own = replace(hold.failure, container=hold.container)
            failures.setdefault(pulls[hold.container], own)
    name = pod_name(job.name, job.run, number)
    attempt = Attempt(number, name, policies=policies, claimed_at=state.now)
    return _close(state, attempt, [*failures.values()], pulls)


def _falls_back(
    state: LifecycleState, failure: PullFailure, record: Record, *, more: int = 0
) -> bool:
    """Whether the failure has another pull policy of its container for an answer."""
    left = record.has_policy_left(state.job, failure.container, more=more)
    return left and failure.pull_class in state.pull.fallback_on


def _wait_for_registry(
    state: LifecycleState, waiting: Iterable[PullFailure], until: datetime | None
) -> Action:
    """Say so in the record, once; or, without `until`, that it is over."""
    if until is not None and state.attempt.gives_up_at == until:
        return state.wait(until)
    words = "; ".join(f"waits for the registry: {_words(failure)}" for failure in waiting)
    after = state.run_record.with_attempt(replace(state.attempt, gives_up_at=until))
    return WriteRecord(replace(after, message=words))


def _close(
    state: LifecycleState, attempt: Attempt, failures: Sequence[PullFailure], pulls: Pulls
) -> WriteRecord:
    record, job, now = state.decided_record, state.job, state.now
    message = "; ".join(f"{failure.container}: {_words(failure)}" for failure in failures)
    outcome = Outcome(Reason.IMAGE_PULL_FAILED, message)
    moved_along = _moved_along(state, failures, pulls)
    attempt = replace(attempt, failures=(*failures, *moved_along))
    after = record.with_attempt_closed(attempt, outcome, now, again=True)
    if all(_falls_back(state, failure, after) for failure in failures):
        following = after.next_policies(job)
        if any(following[f.container] == attempt.policies.get(f.container) for f in failures):
            count = sum(one.outcome is Reason.IMAGE_PULL_FAILED for one in after.attempts)
            closed = replace(after.attempts[-1], retry_at=retry_time(attempt, now, count))
            after = after.with_attempt(closed)
        return WriteRecord(after)
    after = close_or_retry(record, job, attempt, outcome, now)
    if after.state.is_final:
        said = " | ".join(_attempt_summaries(after.attempts))
        after = after.finished(Outcome(Reason.IMAGE_PULL_FAILED, said), now)
    return WriteRecord(after)


def _moved_along(
    state: LifecycleState, failures: Iterable[PullFailure], pulls: Pulls
) -> Iterator[PullFailure]:
    """One for each container with the image and the policy of one that failed.

    One that is at the end of its list stays there: it may yet get its image.
    """
    moved = {failure.container for failure in failures}
    record = state.run_record
    for failure in failures:
        for name, pull in pulls.items():
            is_same = name not in moved and pull == pulls.get(failure.container)
            if is_same and record.has_policy_left(state.job, name, more=1):
                moved.add(name)
                yield replace(failure, container=name, message="")


def told_failures(attempts: Iterable[Attempt]) -> Iterator[tuple[int, PullFailure, str]]:
    """Each pull failure that has a message: its attempt's position, and the runtime's words. Words
    that were there before are named by their attempt.
    """
    known: dict[str, int] = {}
    for position, attempt in enumerate(attempts, 1):
        for failure in attempt.failures:
            if failure.message:
                words = _words(failure)
                first = known.setdefault(words, position)
                yield position, failure, words if first == position else f"as attempt {first}"


def _attempt_summaries(attempts: Sequence[Attempt]) -> Iterator[str]:
    """Of those that failed by a pull."""
    for position, told in groupby(told_failures(attempts), key=itemgetter(0)):
        policies = attempts[position - 1].policies
        parts = (
            f"{failure.container}, {policies.get(failure.container, 'default policy')}: {words}"
            for _, failure, words in told
        )
        yield f"attempt {position}, {', '.join(parts)}"


def _words(failure: PullFailure) -> str:
    """The runtime's words, after the image unless they name it."""
    if failure.image in failure.message:
        return failure.message
    return f"image {failure.image}: {failure.message}"
