"""What keeps a record whose time is over: a pod of its job, or that nobody can read it."""

from functools import partial

from engine.cluster import api
from engine.cluster.api import METADATA_LIST, PODS, list_pages
from engine.cluster.client import Client
from engine.cluster.records import read_record
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
    Errors: none; they are the entry's reason.
    """
    key = candidate.job_of_record
    if key is None:
        return None
    retry = partial(retry_transient, tries=TRIES)
    try:
        record = retry(lambda: read_record(client, key))
        last = _last_pod(record) if record is not None else None
        pods = [last] if last and retry(lambda: api.get_metadata(client, last)) else []
        selector = f"{JOB}={key.name}"
        path = PODS.path(key.namespace)
        for page in list_pages(client, path, selector, accept=METADATA_LIST, retry=retry):
            pods += [PODS.ref(item["metadata"]) for item in page["items"] or ()]
    except BrokenRecordError as error:
        return candidate.invalid(f"{reason}, but it can't be read: {error.cause}")
    except EngineError as error:
        return candidate.failed(error_text(error))
    words = f"{reason}; {pods[0]} is still there" if pods else ""
    return candidate.kept(words, KeepReason.POD_LEFT) if pods else None


def _last_pod(record: Record) -> Ref | None:
    """The pod of the last attempt, of this run or else of the one before."""
    namespace, name = record.key.namespace, record.key.name
    if record.last is not None:
        return Ref("Pod", namespace, record.last.pod)
    if not record.history:
        return None
    past = record.history[0]
    return Ref("Pod", namespace, pod_name(name, past.run, past.last_number))
