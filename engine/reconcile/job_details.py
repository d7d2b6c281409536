"""Everything that can be read of one job: its status, its pods, their Events."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.decide.outlook import Outlook, read_outlook
from engine.decide.situation import uid_of
from engine.errors import EngineError, ForbiddenError, NoRecordError
from engine.reconcile.job_overview import JobStatus, Overview, read_overview
from engine.refs import JobKey, Ref
from engine.times import format_time, parse_time

_MOST_ATTEMPTS = 5
"""Of the newest ones the Events are read."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """One Kubernetes Event on a pod of the job."""

    at: datetime | None
    """When it was last seen."""
    is_warning: bool
    reason: str
    source: str
    """Who wrote it."""
    pod: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class JobDetails:
    """One job."""

    job: JobStatus
    """Its status."""
    overview: Overview
    """What was read with it."""
    outlook: Outlook | None
    """What it waits for, and what comes next; None without a record that can be read."""
    pods: Mapping[str, Mapping[str, Any]]
    """Pods of its attempts that are still there, by UID."""
    events: tuple[EventLine, ...]
    """The oldest first."""
    unread: tuple[str, ...]
    """What could not be read, in words."""


def read_details(client: Client, key: JobKey) -> JobDetails:
    """Errors: NoRecordError; those of the lists."""
    overview = read_overview(client, (key.namespace,))
    job = next((job for job in overview.jobs if job.key == key), None)
    if job is None:
        raise NoRecordError(str(key))
    pods: dict[str, Mapping[str, Any]] = {}
    events: list[Mapping[str, Any]] = []
    unread = list(overview.unread)
    record, outlook = job.record, None
    if record is not None and job.standing is not None:
        followed, queue = overview.is_followed(record.source), str(job.queue or "")
        outlook = read_outlook(record, job.standing, job.pod, is_followed=followed, queue=queue)
        for attempt in record.attempts:
            ref = Ref("Pod", key.namespace, attempt.pod)
            pod = job.pod if job.pod and uid_of(job.pod) == attempt.uid else _find(client, ref)
            if pod is not None and uid_of(pod) == attempt.uid:
                pods[attempt.uid] = pod
        try:
            for attempt in record.attempts[-_MOST_ATTEMPTS:]:
                if attempt.uid:
                    events += _list_events(client, key.namespace, attempt.uid)
        except ForbiddenError as error:
            unread.append(f"events can't be listed: {error.cause}")
    events.sort(key=_order)
    return JobDetails(job, overview, outlook, pods, tuple(map(_line, events)), tuple(unread))


def _find(client: Client, ref: Ref) -> dict[str, Any] | None:
    try:
        return api.get(client, ref)
    except EngineError:
        return None


def _list_events(client: Client, namespace: str, uid: str) -> list[dict[str, Any]]:
    path = api.EVENTS.path(namespace)
    pages = api.list_pages(client, path, fields=f"involvedObject.uid={uid}")
    return [event for page in pages for event in page["items"]]


def _order(event: Mapping[str, Any]) -> tuple[str, int]:
    """Some writers tell fractions of a second, and some don't."""
    at = str(format_time(_seen_at(event)) or "")[: len("2026-01-02T03:04:05")]
    return at, api.version_number(event["metadata"].get("resourceVersion") or "")


def _seen_at(event: Mapping[str, Any]) -> datetime | None:
    series = (event.get("series") or {}).get("lastObservedTime")
    seen = series or event.get("lastTimestamp") or event.get("eventTime")
    return parse_time(seen or event["metadata"].get("creationTimestamp"))


def _line(event: Mapping[str, Any]) -> EventLine:
    source = (event.get("source") or {}).get("component") or event.get("reportingComponent")
    return EventLine(
        at=_seen_at(event),
        is_warning=event.get("type") == "Warning",
        reason=str(event.get("reason") or ""),
        source=str(source or ""),
        pod=str(event["involvedObject"].get("name") or ""),
        message=str(event.get("message") or ""),
        count=(event.get("series") or {}).get("count") or event.get("count") or 1,
    )
