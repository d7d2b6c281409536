"""Everything that can be read of jobs at once: records, pods, and who follows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.leases import list_leases
from engine.cluster.records import RecordList, list_records, read_record
from engine.decide.follower import Follower, read_follower
from engine.decide.record import Record
from engine.decide.situation import uid_of
from engine.decide.standing import Standing, read_standing, recorded_standing
from engine.errors import BrokenRecordError, ForbiddenError
from engine.refs import JobKey
from engine.status.outcome import State
from engine.wellknown import MANAGED_BY, MANAGER

_PODS = f"{MANAGED_BY}={MANAGER}"


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Where a job stands in the queue for a quota: counts from 1; waited is in seconds."""

    position: int
    length: int
    waited: float

    def __str__(self) -> str:
        return f"{_ordinal(self.position)} of {self.length} in the queue for {self.waited:.0f}s"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job."""

    key: JobKey
    """The job."""
    record: Record | None
    """Its record; None where that can't be read."""
    error: BrokenRecordError | None = None
    """Why it can't."""
    standing: Standing | None = None
    """Where it stands by record and pod; None without a record."""
    pod: Mapping[str, Any] | None = None
    """The pod of its last attempt; None if it is gone, or nobody may look."""
    queue: QueuePosition | None = None
    """Its place in the line for a quota."""
    written_at: datetime | None = None
    """When its record was last written; None where the server doesn't say."""

    @property
    def timeless(self) -> object:
        """What is told of it, but for how long it has been so."""
        place = self.queue and (self.queue.position, self.queue.length)
        last = self.record.last.pod if self.record and self.record.last else ""
        return self.standing, place, last, str(self.error or "")


@dataclass(frozen=True, slots=True)
class Overview:
    """What was read."""

    jobs: tuple[JobStatus, ...]
    """Every job there is a record of, by namespace and name."""
    as_of: datetime
    """The server's time when it was read."""
    followers: tuple[Follower, ...] | None
    """What the Leases say; None where they can't be read."""
    unread: tuple[str, ...] = field(default=())
    """What could not be read, in words."""

    def is_followed(self, source: str) -> bool | None:
        """Whether an engine holds the Lease of this source; None where nobody can tell."""
        if self.followers is None:
            return None
        return any(f.is_alive for f in self.followers if f.source == source)


def read_overview(client: Client, namespaces: Sequence[str], selector: str = "") -> Overview:
    """Jobs of the namespaces ("" for all) whose records `selector` picks.

    Pods and Leases may be forbidden: then the records alone count. Errors: those of the lists.
    """
    lists = [list_records(client, namespace, selector) for namespace in namespaces]
    unread = []
    pods: dict[str, dict[str, Any]] | None = None
    followers: tuple[Follower, ...] | None = None
    try:
        pods = {uid_of(pod): pod for name in namespaces for pod in _list_pods(client, name)}
    except ForbiddenError as error:
        unread.append(f"pods can't be listed: {error.cause}")
    try:
        followers = _list_followers(client, namespaces)
    except ForbiddenError as error:
        unread.append(f"leases can't be listed: {error.cause}")
    jobs = [job for found in lists for job in _statuses(client, found, pods)]
    jobs.sort(key=lambda job: job.key)
    return Overview(tuple(jobs), client.now(), followers, tuple(unread))


def queue_positions(records: Iterable[Record], now: datetime) -> dict[JobKey, QueuePosition]:
    """Positions of all jobs that wait for a quota: a queue per namespace, by submission."""
    lines: dict[str, list[tuple[datetime, JobKey]]] = {}
    for record in records:
        if record.state is State.QUEUED and record.queued_at and record.open_attempt is None:
            lines.setdefault(record.key.namespace, []).append((record.queued_at, record.key))
    return {
        key: QueuePosition(position, len(line), (now - since).total_seconds())
        for line in lines.values()
        for position, (since, key) in enumerate(sorted(line), start=1)
    }


def _list_pods(client: Client, namespace: str) -> Iterator[dict[str, Any]]:
    for page in api.list_all(client, api.PODS.path(namespace), _PODS):
        yield from page["items"]


def _list_followers(client: Client, namespaces: Sequence[str]) -> tuple[Follower, ...]:
    """An engine may have its Lease in another namespace than its jobs."""
    try:
        leases = list_leases(client, "")
    except ForbiddenError:
        leases = [lease for name in namespaces for lease in list_leases(client, name)]
    now = client.now()
    return tuple(follower for lease in leases if (follower := read_follower(lease, now)))


def _statuses(
    client: Client, found: RecordList, pods: Mapping[str, dict[str, Any]] | None
) -> Iterator[JobStatus]:
    positions = queue_positions(found.items.values(), client.now())
    for key, error in found.invalid.items():
        yield JobStatus(key, None, error, written_at=found.written.get(key))
    for key, record in found.items.items():
        pod = pods.get(record.last.uid) if pods is not None and record.last else None
        latest = record if pods is None or pod is not None else _look_again(client, record)
        is_known = pods is not None and latest is record
        standing = read_standing(record, pod) if is_known else recorded_standing(latest)
        at = found.written.get(key)
        yield JobStatus(key, latest, None, standing, pod, positions.get(key), at)


def _look_again(client: Client, record: Record) -> Record:
    """The same, unless it has been written since: an engine does so before it deletes a pod."""
    attempt = record.open_attempt
    latest = read_record(client, record.key) if attempt is not None and attempt.uid else None
    return record if latest is None or latest.version == record.version else latest


def _ordinal(number: int) -> str:
    teens = number // 10 % 10 == 1
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
