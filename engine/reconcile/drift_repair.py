"""Put back, once each, what somebody changed or deleted under a running pod."""

from collections.abc import Iterable
from typing import Any

from engine.cluster import objects
from engine.cluster.client import Client
from engine.errors import AdmissionRefusedError, ForbiddenError, QuotaExceededError
from engine.reconcile.memory import JobMemory
from engine.refs import ref_of
from engine.telemetry.events import Drift
from engine.transform.copying import with_field

_MAY_NOT = (ForbiddenError, AdmissionRefusedError, QuotaExceededError)


def put_back(
    client: Client, memory: JobMemory, wanted: Iterable[dict[str, Any]]
) -> tuple[Drift, ...]:
    """Compare with what is there, and write what is not so; what was found.

    Somebody who changes it again is told, not fought. Where the right to mend is missing, the
    running job is none the worse: it is told and goes on.
    """
    found = []
    for manifest in wanted:
        ref = ref_of(manifest)
        existing = objects.get(client, ref)
        if existing is not None and existing.get("data") == manifest["data"]:
            continue
        mend = ref not in memory.repaired and _write(client, memory, manifest, existing)
        memory.repaired.add(ref)
        found.append(Drift(memory.job.key, ref, existing is None, mend))
    return tuple(found)


def _write(
    client: Client, memory: JobMemory, manifest: dict[str, Any], existing: dict[str, Any] | None
) -> bool:
    memory.writes += 1
    try:
        if existing is None:
            objects.create(client, manifest)
        else:
            version = existing["metadata"]["resourceVersion"]
            objects.replace(
                client, with_field(manifest, "metadata", "resourceVersion", value=version)
            )
    except _MAY_NOT:
        return False
    return True
