"""Kubernetes Events: write ours, read the kubelet's for the first cause of a failure."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import asdict

from engine import __version__
from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import EngineError
from engine.refs import Ref
from engine.status.outcome import EventReason

_MAX_MESSAGE = 1024
"""Characters of the end, where the cause is."""


def record_event(
    client: Client,
    ref: Ref,
    uid: str,
    *,
    reason: EventReason,
    message: str,
    now: datetime,
    suffix: str = "",
) -> None:
    """Best effort: an Event is news, and news that may not be written must not stop a job."""
    seen = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{ref.name}.{reason.lower()}{suffix}", "namespace": ref.namespace},
        "involvedObject": {"apiVersion": api.OWN[ref.kind].api_version, **asdict(ref), "uid": uid},
        "reason": reason,
        "message": message[-_MAX_MESSAGE:],
        "type": "Normal" if reason is EventReason.STARTED else "Warning",
        "source": {"component": f"engine/{__version__}"},
        "firstTimestamp": seen,
        "lastTimestamp": seen,
        "count": 1,
    }
    with suppress(EngineError):
        api.create(client, manifest)


def find_pull_cause(client: Client, ref: Ref, uid: str, image: str) -> str:
    """First `Failed` event of this pod that names the image, if there is one to be read."""
    fields = f"involvedObject.uid={uid},reason=Failed"
    unknown = f'image "{image}" could not be pulled; the cause was not reported'
    try:
        pages = list(api.list_pages(client, api.EVENTS.path(ref.namespace), fields=fields))
    except EngineError:
        return unknown
    events = [event for page in pages for event in page["items"]]
    events.sort(key=lambda event: event.get("firstTimestamp") or event.get("eventTime") or "")
    for event in events:
        message: str = event.get("message", "")
        if message.startswith("Failed to pull image") and image.rpartition("/")[2] in message:
            return message
    return unknown
