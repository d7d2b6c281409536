"""Write on every object how it is kept: for how many seconds, or that it may not be pruned. And on
the pod, whether it may be evicted.

A pod has a mark of what the engine wrote, as kubectl's `last-applied` is: what another hand wrote
since is known by it, and stays.
"""

import hashlib
import math
from typing import Any

from engine.api.model import Job
from engine.durations import FOREVER
from engine.transform.context import TransformContext, with_field
from engine.wellknown import (
    DISRUPTION,
    EXPIRES_AT,
    HOLD,
    LAST_APPLIED,
    MANAGED_BY,
    NOT_EVICTED,
    PROTECT,
    RESERVED_PREFIX,
    TTL,
)

Kept = dict[str, dict[str, str]]
"""Labels and annotations, as in an object's metadata."""
_OWN = (TTL, HOLD, EXPIRES_AT, DISRUPTION)
"""Of the engine's own keys those that say how a job is kept."""


def set_ttl_annotation(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The TTL in whole seconds, or `forever`; and the hold, if the spec asks for one."""
    protects = is_protected(context.job)
    kept = kept_metadata(context.job, protects=protects)
    own = {key: kept["annotations"][key] for key in (TTL, HOLD) if key in kept["annotations"]}
    if manifest["kind"] == "Pod":
        own[LAST_APPLIED] = kept_mark(kept)
        if protects:
            own = {**NOT_EVICTED, **(manifest["metadata"].get("annotations") or {}), **own}
            manifest = with_field(manifest, "metadata", "labels", DISRUPTION, value=PROTECT)
    for key, value in own.items():
        manifest = with_field(manifest, "metadata", "annotations", key, value=value)
    return manifest


def is_protected(job: Job) -> bool:
    """Whether no drain is to evict its running pod."""
    return job.spec.get("disruption") == PROTECT


def kept_metadata(job: Job, *, protects: bool = False) -> Kept:
    """What the spec has its objects labelled and annotated with, but for what its patch changes."""
    patched = (job.spec.get("podPatch") or {}).get("metadata") or {}
    given = {"labels": {**job.labels}, "annotations": {**job.annotations}}
    given["labels"].pop(MANAGED_BY, None)
    if protects:
        given["labels"][DISRUPTION] = PROTECT
        given["annotations"] = {**NOT_EVICTED, **given["annotations"]}
    kept = {
        field: {
            key: value for key, value in values.items() if key not in (patched.get(field) or {})
        }
        for field, values in given.items()
    }
    kept["annotations"][TTL] = FOREVER if math.isinf(job.ttl) else str(math.ceil(job.ttl))
    if job.spec.get("hold"):
        kept["annotations"][HOLD] = "true"
    return kept


def kept_mark(kept: Kept) -> str:
    """The keys of what is written, each with a digest of its value."""
    return " ".join(
        f"{field}/{key}={hashlib.sha256(value.encode()).hexdigest()[:8]}"
        for field, values in kept.items()
        for key, value in values.items()
    )


def read_mark(mark: str) -> dict[tuple[str, str], str]:
    """Digests by field and key. Another hand may have written it: of the engine's own keys only
    those count that say how a job is kept.
    """
    found = {}
    for name, _, digest in (entry.partition("=") for entry in mark.split()):
        field, _, key = name.partition("/")
        is_own = key == MANAGED_BY or (key.startswith(RESERVED_PREFIX) and key not in _OWN)
        if field in ("labels", "annotations") and not is_own:
            found[field, key] = digest
    return found
