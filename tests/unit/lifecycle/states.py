"""States for the rules, from a job, its record, and pods."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from engine.api.model import Job, PullClass, PullSettings
from engine.errors import AdmissionRefusedError, ApiError, QuotaExceededError
from engine.lifecycle.actions import Action, ReportError, WriteRecord
from engine.lifecycle.record import Attempt, PullFailure, Record
from engine.lifecycle.rules import decide
from engine.lifecycle.state import LifecycleState, Observation, Rejection
from engine.status.deletion import Deletion
from engine.status.outcome import Masked, Outcome, Reason, State
from tests.unit.builders import make_job
from tests.unit.pods import UID

NOW = datetime(2026, 1, 1, 12, 0, 20, tzinfo=UTC)
SOURCE = "default"
JOB = make_job()
PULL_FAILURE = PullFailure(
    "main", "ErrImagePull", PullClass.NOT_FOUND, "main:1: not found", "main:1"
)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def make_state(
    job: Job = JOB,
    record: Record | None = None,
    *pods: Mapping[str, Any],
    settled: Iterable[str] = (),
    gone: Iterable[str] | None = None,
    made: Iterable[str] | None = None,
    missing: Mapping[str, str] | None = None,
    ends: Mapping[str, Outcome] | None = None,
    rejection: Rejection | None = None,
    causes: Mapping[tuple[str, str], str] | None = None,
    asked: Mapping[str, datetime] | None = None,
    cached: Mapping[tuple[str, str], bool] | None = None,
    deletions: Mapping[str, Deletion] | None = None,
    looked_up: Mapping[tuple[str, bool], datetime] | None = None,
    now: datetime = NOW,
    pull: PullSettings | None = None,
    source: str = SOURCE,
) -> LifecycleState:
    """Unless `asked` says otherwise, the API itself has just been asked for the pods.

    Unless `made` and `gone` do, the pods are this engine's own, and those of closed attempts that
    aren't there are known to be gone.
    """
    uids = [pod["metadata"]["uid"] for pod in pods]
    closed = [a.uid for a in record.attempts if not a.is_open] if record else []
    observed = Observation(
        created=dict.fromkeys(uids if made is None else made, record.version if record else ""),
        pods=tuple(pods),
        dependents_ready=frozenset(settled),
        secrets_missing=dict(missing or {}),
        deleted_uids=frozenset(set(closed) - set(uids) if gone is None else gone),
        deleted_outcomes=dict(ends or {}),
        rejection=rejection,
        pull_causes=dict(causes or {}),
        cached_images=dict(cached or {}),
        deletions=deletions or {},
        dependents_looked_up=dict(looked_up or {}),
        read_ungated={pod["metadata"]["uid"] for pod in pods} if asked is None else set(asked),
        refreshed_at={pod["metadata"]["uid"]: now for pod in pods}
        if asked is None
        else dict(asked),
    )
    return LifecycleState(job, record, observed, now, source, pull or PullSettings())


def act(*given: Any, **more: Any) -> Action:
    return decide(make_state(*given, **more))


def written(*given: Any, **more: Any) -> Record:
    """The record that is written next; anything else fails the test."""
    action = act(*given, **more)
    assert isinstance(action, WriteRecord), action
    return action.record


def attempt(number: int = 1, *, uid: str = UID, job: Job = JOB, **more: Any) -> Attempt:
    """An attempt that is under way, unless `more` gives it an outcome."""
    name = f"{job.name}-{job.run}-{number}"
    return Attempt(number, name, uid=uid, claimed_at=at(-20), **more)


def record(*attempts: Attempt, job: Job = JOB, **more: Any) -> Record:
    """The record of the job's own run: Starting, with these attempts."""
    base = Record(job.key, SOURCE, job.spec_hash, state=State.STARTING, attempts=attempts)
    return replace(base, queued_at=at(-30), version="7", **more)


def finished(reason: Reason = Reason.SUCCEEDED, *, job: Job = JOB, **more: Any) -> Record:
    """The record of a run that is over."""
    code = 0 if reason is Reason.SUCCEEDED else 1
    done = attempt(job=job, outcome=reason, exit_code=code, finished_at=at(-5))
    over = record(done, job=job, reason=reason, exit_code=code, finished_at=at(-5), **more)
    return replace(over, state=reason.state)


def quota(retry_in: float = 5.0, message: str = "exceeded quota: q", uid: str = "") -> Rejection:
    name = QuotaExceededError(message, status=403, reason="Forbidden").quota
    return Rejection(QuotaExceededError, Masked(message), at(retry_in), uid, quota=name)


def refused_record(
    kind: type[ApiError] = QuotaExceededError,
    version: str = "",
    message: str = "exceeded quota: c",
    retry_in: float = 5.0,
) -> Rejection:
    """The write of the record with this version was refused."""
    return Rejection(kind, Masked(message), at(retry_in), record_version=version)


def report(rejection: Rejection) -> ReportError:
    """What the engine says where no record can."""
    return ReportError(rejection.message, rejection.hint, rejection.kind)


def admission(message: str = "denied by policy", uid: str = "") -> Rejection:
    return Rejection(AdmissionRefusedError, Masked(message), at(5.0), uid)
