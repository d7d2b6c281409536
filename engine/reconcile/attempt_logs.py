"""Save the logs of an attempt's containers as soon as it has ended: pods go."""

from collections.abc import Iterator

from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.logs import LogArchive
from engine.errors import EngineError
from engine.lifecycle.record import Attempt
from engine.refs import JobKey, Ref
from engine.status.containers import container_states

_TIMEOUT = 5.0
"""Seconds that a job's end waits for a node that is silent."""


def save_logs(client: Client, archive: LogArchive, key: JobKey, attempt: Attempt) -> Iterator[str]:
    """What could not be saved, and why. To be called once, before the attempt's pod is deleted."""
    ref = Ref("Pod", key.namespace, attempt.pod)
    if not attempt.uid:
        return
    try:
        pod = api.get(client, ref, timeout=_TIMEOUT)
    except EngineError as error:
        yield error.cause
        return
    if pod is None or pod["metadata"]["uid"] != attempt.uid:
        if attempt.started_at is not None:
            yield "the pod is gone"
        return
    for name in (one.name for one in container_states(pod) if one.has_started):
        try:
            archive.save(client, ref, name, timeout=_TIMEOUT)
        except EngineError as error:
            yield f"{name}: {error.cause}"
        except OSError as error:
            yield f"{error.strerror}: {archive.folder}"
