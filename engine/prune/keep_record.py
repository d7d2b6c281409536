"""What keeps a record whose time is over: a pod of its job, or that nobody can read it."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from engine.cluster.api import CONFIG_MAPS, PODS, Resource, list_pages
from engine.cluster.client import Client
from engine.cluster.records import parse_record
from engine.decide.record import Record
from engine.errors import BrokenRecordError, EngineError
from engine.prune.candidate import PruneCandidate
from engine.prune.delete import error_text
from engine.prune.result import KeepReason, PruneEntry
from engine.refs import Ref, pod_name
from engine.runtime.retry import TRIES, retry_transient
from engine.wellknown import JOB


def keep_record(client: Client, candidate: PruneCandidate, reason: str) -> PruneEntry | None:
    """Its entry if it stays; None if nothing is left of its job.

    Pods are looked for by their label, and the last one by its name, too: labels can be changed.
    Nothing but the right to list is needed. Errors: none; they are the entry's reason.
    """
    key = candidate.job_of_record
    if key is None:
        return None
    find = partial(_find, client, key.namespace)
    try:
        pods = [*find(PODS, selector=f"{JOB}={key.name}")]
        for item in find(CONFIG_MAPS, fields=f"metadata.name={candidate.ref.name}"):
            last = _last_pod(parse_record(item))
            pods += find(PODS, fields=f"metadata.name={last}") if last else ()
    except BrokenRecordError as error:
        return candidate.invalid(f"{reason}, but it can't be read: {error.cause}")
    except EngineError as error:
        return candidate.failed(error_text(error))
    if not pods:
        return None
    left = Ref("Pod", key.namespace, pods[0]["metadata"]["name"])
    return candidate.kept(f"{reason}; {left} is still there", KeepReason.POD_LEFT)


def _find(
    client: Client, namespace: str, resource: Resource, *, selector: str = "", fields: str = ""
) -> Iterator[dict[str, Any]]:
    retry = partial(retry_transient, tries=TRIES)
    path = resource.path(namespace)
    for page in list_pages(client, path, selector, fields=fields, retry=retry):
        yield from page["items"]


def _last_pod(record: Record) -> str:
    """Name of the pod of the last attempt, of this run or else of the one before; "" for none."""
    if record.last is not None:
        return record.last.pod
    if not record.history:
        return ""
    past = record.history[0]
    return pod_name(record.key.name, past.run, past.last_number)
