"""Say in the status of a JobSpec object why nothing of it is started, and in an Event."""

from collections.abc import Mapping

from engine.api.model import JobObject
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.events import record_event
from engine.cluster.records import STATUS_RECORDS, job_object, write_status
from engine.informers.job_specs import SpecObject
from engine.lifecycle.object_status import cut, encode_refusal
from engine.refs import JobKey
from engine.status.outcome import EventReason

Refusals = Mapping[JobKey, tuple[JobObject, str]]
"""Objects that make no job, as they were read, and why."""
CLAIMED = "ClaimedBySource"
"""The reason where a file has the name."""


def report_refusal(
    client: Client, spec: SpecObject, seen: JobObject, reason: str, message: str, events: bool
) -> None:
    """Once for a generation of the object and a message; what it ran before stays in the status.

    Nothing is said of the object once it is no longer as it was `seen`.

    Errors: ConflictError where the object has changed meanwhile; others of the API.
    """
    message = cut(message)
    if spec.object != seen or spec.refusal == (seen.generation, reason, message):
        return
    ref = STATUS_RECORDS.ref(spec.key)
    item = api.get(client, ref)
    if item is None or job_object(item) != seen:
        return  # the watch is about to say so
    now, status = client.now(), item.get("status") or {}
    status = encode_refusal(status, seen.generation, reason, message, now)
    write_status(client, spec.key, seen.uid, item["metadata"]["resourceVersion"], status)
    if events:
        event, suffix = EventReason.INVALID_SPEC, f".{seen.uid[:8]}.{seen.generation}"
        words = f"{reason}: {message}"
        record_event(client, ref, seen.uid, reason=event, message=words, now=now, suffix=suffix)
