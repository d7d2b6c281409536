"""The one view of a job, from which status and describe are printed: its record, pod and engine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.cluster import api
from engine.cluster.api import Resource
from engine.cluster.client import Client
from engine.cluster.records import list_records, read_record
from engine.durations import format_age
from engine.errors import EngineError, ForbiddenError, UsageError, no_record
from engine.lifecycle.observed_status import (
    ObservedStatus,
    observed_status,
    read_wait,
    recorded_status,
)
from engine.lifecycle.orphan import orphaned_since
from engine.lifecycle.record import Record
from engine.lifecycle.state import gate_position, is_terminating, slim_pod, uid_of
from engine.refs import JobKey, Ref
from engine.runtime.lease import LeaseObject, lease_number, owner, read_lease_record
from engine.status.containers import has_started
from engine.status.drain import runs_on
from engine.status.outcome import Reason, State
from engine.times import parse_time
from engine.wellknown import MANAGED_BY, MANAGER, SOURCE

_MAX_EVENT_ATTEMPTS = 5
"""Events are read of the pods of so many of the newest attempts."""
_TOLERANCE = timedelta(seconds=15)
"""Clocks may differ by this much, and a renewal may be late by it."""


class QueuePosition(Struct, frozen=True):
    """The place of a job in the queue for a quota: counts from 1; waited is in seconds."""

    position: int
    length: int
    waited: float

    def __str__(self) -> str:
        return f"{self.position} of {self.length} in the queue for {self.waited:.0f}s"


class PodEvent(Struct, frozen=True):
    """One Kubernetes Event on a pod of the job."""

    at: datetime | None
    """When it was last seen."""
    type: str
    reason: str
    source: str
    pod: str
    message: str
    count: int


class JobView(Struct, frozen=True):
    """One job as its record, its pods and their Events show it."""

    key: JobKey
    record: Record | None
    """None where it can't be read, or there is none yet, as `error` says."""
    error: EngineError | None = None
    """Why the record can't be read, or what is invalid of its JobSpec object."""
    status: ObservedStatus | None = None
    """None without a record."""
    pods: Mapping[str, Mapping[str, Any]] = {}
    """Those of its attempts that are still there, by UID."""
    queue: QueuePosition | None = None
    written_at: datetime | None = None
    """When its record was last written, where the server says so."""
    outdated: tuple[str, ...] | None = None
    """Fields that ran with other defaults; None where its spec isn't known."""
    events: tuple[PodEvent, ...] = ()
    """The oldest first; only `read_job` reads them."""
    engine: str = ""
    """Which engine has the job, while it is not over."""

    @property
    def pod(self) -> Mapping[str, Any] | None:
        """The pod of its last attempt; None if it is gone, or may not be read."""
        last = self.record.last if self.record is not None else None
        return self.pods.get(last.uid) if last is not None else None

    @property
    def pod_name(self) -> str:
        """The name of that pod, also of one that is gone; "" where there was none."""
        last = self.record.last if self.record is not None else None
        return last.pod if last is not None else ""

    @property
    def without_ages(self) -> object:
        """Equal for two views that differ only by the time that has passed."""
        place = self.queue and (self.queue.position, self.queue.length)
        return self.status, place, self.pod_name, str(self.error or "")


class LeaseHolder(Struct, frozen=True):
    """The holder of one of a source's Leases."""

    source: str
    namespace: str
    """The namespace of the Lease."""
    holder: str
    """The last holder; "" once it has released the Lease."""
    renewed_at: datetime | None
    """By the holder's clock."""
    is_alive: bool
    """Whether the Lease has been renewed in time."""
    number: int = 0
    """Of the Lease among those of its source."""


class LeaseHolders(Struct, frozen=True):
    """The holders of Leases at one moment."""

    as_of: datetime
    """By the server's clock."""
    found: tuple[LeaseHolder, ...] | None = None
    """None where Leases can't be read."""
    is_complete: bool = False
    """False where Leases of other namespaces can't be read: an engine may have its own there."""

    def following(self, source: str) -> dict[int, LeaseHolder]:
        """The engines that follow `source`, by the number of their Lease."""
        alive = (one for one in self.found or () if one.source == source and one.is_alive)
        return {one.number: one for one in alive}

    def words(self, source: str) -> str:
        """The engines that follow `source`, and when each last renewed its Lease."""
        names = []
        for one in self.following(source).values():
            age = (self.as_of - one.renewed_at).total_seconds() if one.renewed_at else None
            names.append(one.holder + ("" if age is None else f", renewed {format_age(age)} ago"))
        if names:
            return f"source {source} is followed by {'; '.join(names)}"
        if not self.is_complete:
            return f"whether an engine follows source {source} is not known"
        return f"no engine follows source {source}; run engine reconcile"


class Overview(Struct, frozen=True):
    """Jobs at one moment, and the engines that follow them."""

    jobs: tuple[JobView, ...]
    """By namespace and name."""
    as_of: datetime
    """By the server's clock."""
    holders: LeaseHolders
    unread: tuple[str, ...] = ()
    """What could not be read, in words."""


def read_overview(client: Client, namespaces: Sequence[str], selector: str = "") -> Overview:
    """Jobs of the namespaces ("" for all) whose records `selector` picks.

    Pods and Leases may be forbidden: then the records alone count. Errors: those of the lists.
    """
    lists = [list_records(client, namespace, selector) for namespace in namespaces]
    unread: list[str] = []
    pods, holders = None, LeaseHolders(client.now())
    with _noting(unread, "pods"):
        found_pods = [pod for name in namespaces for pod in _list_own(client, api.PODS, name)]
        pods = {uid_of(pod): pod for pod in found_pods}
    with _noting(unread, "leases"):
        holders = list_holders(client, namespaces)
    now, jobs = client.now(), list[JobView]()
    for found in lists:
        positions = queue_positions(found.items.values(), now)
        errors: dict[JobKey, EngineError] = {**found.invalid}
        for key, (_, reason, words) in found.refused.items():
            errors.setdefault(key, UsageError(f"{reason}: {words}", where=str(key)))
        jobs += (
            JobView(key, None, errors[key], written_at=found.written.get(key))
            for key in errors.keys() - found.items.keys()
        )
        for key, record in found.items.items():
            error = errors.get(key) if record.object is not None else None
            view = JobView(key, record, error, written_at=found.written.get(key))
            view = replace(view, queue=positions.get(key))
            following = holders.following(record.source) if not record.state.is_final else {}
            if (number := owner(record.owned_by_name, following)) is not None:
                view = replace(view, engine=following[number].holder)
            jobs.append(_with_pods(client, view, record, pods))
    jobs.sort(key=lambda job: job.key)
    return Overview(tuple(jobs), now, holders, tuple(unread))


def jobs_on_node(client: Client, namespaces: Sequence[str], node: str) -> set[JobKey]:
    """The jobs whose pods are on a node, by their records. Errors: those of the lists."""
    overview = read_overview(client, namespaces)
    return {job.key for job in overview.jobs if runs_on(job.pod) == node}


def read_job(client: Client, key: JobKey) -> tuple[JobView, Overview]:
    """One job with its Events, and the overview that it is of.

    Errors: UsageError without a record; those of `read_overview`.
    """
    overview = read_overview(client, (key.namespace,))
    view = next((job for job in overview.jobs if job.key == key), None)
    if view is None:
        raise no_record(str(key))
    uids = [attempt.uid for attempt in view.record.attempts if attempt.uid] if view.record else []
    events: list[dict[str, Any]] = []
    unread = [*overview.unread]
    with _noting(unread, "events"):
        for uid in uids[-_MAX_EVENT_ATTEMPTS:]:
            path, fields = api.EVENTS.path(key.namespace), f"involvedObject.uid={uid}"
            pages = api.list_pages(client, path, fields=fields)
            events += [one for page in pages for one in page["items"]]
    view = replace(view, events=tuple(map(_read_event, sorted(events, key=_version))))
    return view, replace(overview, unread=tuple(unread))


def next_step(view: JobView) -> tuple[str, str]:
    """What a job waits for, and what comes then; both "" where its record can't be read."""
    record, status, pod = view.record, view.status, view.pod
    if record is None or status is None:
        return "", ""
    if record.state.is_final:
        again = f"nothing, until its spec changes or engine rerun {record.key}"
        return "", again
    attempt = record.open_attempt
    number = len(record.attempts) + (attempt is None)
    if attempt is None or not attempt.uid:
        if orphaned_since(record.annotations):
            return "its spec, which is gone", "nothing, until it is back"
        starts = f"attempt {number} starts"
        if view.queue is not None:
            return f"room in a quota, {view.queue}: {record.message}", starts
        if record.state is State.QUEUED and record.message:
            return record.message.removeprefix("waits for "), starts
        return f"an engine to create the pod of attempt {number}", starts
    if not status.is_recorded:
        waits_for = f"an engine to record how attempt {number} ended"
        return waits_for, f"{status.reason} is recorded"
    outcome = "its outcome is recorded"
    if pod is None:
        return f"an engine to look for pod {attempt.pod}", outcome
    if is_terminating(pod):
        return "the end of its pod, which is being deleted", outcome
    if has_started(pod):
        return "the end of its main container", outcome
    if gate_position(pod) is not None:
        return "an engine to create what the pod owns, and to open its gate", "the pod starts"
    waits_for = status.message if attempt.gives_up_at else read_wait(pod)
    return waits_for.removeprefix("waits for "), "its containers start, or the attempt fails"


@contextmanager
def _noting(unread: list[str], kind: str) -> Iterator[None]:
    """What may not be listed is noted, and left out."""
    try:
        yield
    except ForbiddenError as error:
        unread.append(f"{kind} can't be listed: {error.cause}")


def queue_positions(records: Iterable[Record], now: datetime) -> dict[JobKey, QueuePosition]:
    """Positions of all jobs that wait for a quota: a queue per namespace, by submission."""
    queues: dict[str, list[tuple[datetime, JobKey]]] = {}
    for record in records:
        is_waiting = record.state is State.QUEUED and record.open_attempt is None
        if is_waiting and record.queued_at and record.reason is not Reason.WAITING_FOR_IMAGE:
            queues.setdefault(record.key.namespace, []).append((record.queued_at, record.key))
    return {
        key: QueuePosition(position, len(queue), (now - since).total_seconds())
        for queue in queues.values()
        for position, (since, key) in enumerate(sorted(queue), start=1)
    }


def _with_pods(
    client: Client, view: JobView, record: Record, pods: Mapping[str, dict[str, Any]] | None
) -> JobView:
    """A pod under way that no list has is asked for by its name: its labels may have changed.

    If it is gone, the record is read again: an engine writes it before it deletes a pod.
    """
    if pods is None:
        return replace(view, status=recorded_status(record))
    own = {a.uid: pods[a.uid] for a in record.attempts if a.uid in pods}
    attempt = record.open_attempt
    if attempt is not None and attempt.uid and attempt.uid not in own:
        pod = api.get(client, Ref("Pod", record.key.namespace, attempt.pod))
        if pod is not None and uid_of(pod) == attempt.uid:
            own[attempt.uid] = pod
        else:
            latest = read_record(client, record.key) or record
            if latest.version != record.version:
                return replace(view, record=latest, status=recorded_status(latest))
    status = observed_status(record, own.get(attempt.uid) if attempt is not None else None)
    return replace(view, status=status, pods=own)


def list_holders(client: Client, namespaces: Iterable[str]) -> LeaseHolders:
    """Those of all namespaces, or else of these: an engine may have its Lease elsewhere than its
    jobs. Errors: ForbiddenError without either right; others of the API.
    """
    is_complete = True
    try:
        leases = [*_list_own(client, api.LEASES, "")]
    except ForbiddenError:
        is_complete = False
        leases = [lease for name in namespaces for lease in _list_own(client, api.LEASES, name)]
    now = client.now()
    found = tuple(h for lease in leases if (h := read_lease_holder(lease, now)))
    return LeaseHolders(now, found, is_complete)


def read_lease_holder(lease: LeaseObject, now: datetime) -> LeaseHolder | None:
    """None for a Lease that no engine made.

    An elector never compares the times of a Lease with its own clock. A reader may: nothing is
    decided by the answer, and it is shown with its age.
    """
    metadata, record = lease["metadata"], read_lease_record(lease)
    source = (metadata.get("labels") or {}).get(SOURCE, "")
    number = lease_number(lease, source) if source else None
    if number is None:
        return None
    try:
        renewed = parse_time(record.renewed)
    except ValueError:
        renewed = None
    late = timedelta(seconds=record.seconds) + _TOLERANCE
    is_alive = bool(record.holder) and renewed is not None and now - renewed <= late
    place = metadata.get("namespace", "")
    return LeaseHolder(source, place, record.holder, renewed, is_alive, number)


def _list_own(client: Client, resource: Resource, namespace: str) -> Iterator[dict[str, Any]]:
    """Objects with the engine's label."""
    path, own = resource.path(namespace), f"{MANAGED_BY}={MANAGER}"
    for page in api.list_all(client, path, own, keep=slim_pod if resource is api.PODS else None):
        yield from page["items"]


def _version(event: Mapping[str, Any]) -> int:
    return api.version_number(event["metadata"].get("resourceVersion") or "")


def _read_event(event: Mapping[str, Any]) -> PodEvent:
    series, source = event.get("series") or {}, event.get("source") or {}
    seen = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return PodEvent(
        at=parse_time(seen or event["metadata"].get("creationTimestamp")),
        type="Warning" if event.get("type") == "Warning" else "Normal",
        reason=str(event.get("reason") or ""),
        source=str(source.get("component") or event.get("reportingComponent") or ""),
        pod=str(event["involvedObject"].get("name") or ""),
        message=str(event.get("message") or ""),
        count=series.get("count") or event.get("count") or 1,
    )
