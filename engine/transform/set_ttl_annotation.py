"""Write on every object how it is kept: for how many seconds, or that it may not be pruned. And on
the pod, whether it may be evicted.

A pod has a mark of what the engine wrote, so that what another hand wrote there is known.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from engine.api.model import Job
from engine.durations import FOREVER
from engine.transform.context import TransformContext, with_field
from engine.wellknown import DISRUPTION, HOLD, LAST_APPLIED, MANAGED_BY, NOT_EVICTED, PROTECT, TTL

PROTECTION = f"labels/{DISRUPTION}"
"""In the mark of a pod that the engine protects: who takes the label off frees that pod."""
Kept = Mapping[str, Mapping[str, str]]
"""Labels and annotations, as in an object's metadata."""


def set_ttl_annotation(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The TTL in whole seconds, or `forever`; and the hold, if the spec asks for one."""
    kept = kept_metadata(context.job)
    own = {key: kept["annotations"][key] for key in (TTL, HOLD) if key in kept["annotations"]}
    if manifest["kind"] == "Pod":
        own[LAST_APPLIED] = kept_mark(kept)
        if is_protected(context.job):
            own = {**NOT_EVICTED, **(manifest["metadata"].get("annotations") or {}), **own}
            own[LAST_APPLIED] += f" {PROTECTION}"
            manifest = with_field(manifest, "metadata", "labels", DISRUPTION, value=PROTECT)
    for key, value in own.items():
        manifest = with_field(manifest, "metadata", "annotations", key, value=value)
    return manifest


def is_protected(job: Job) -> bool:
    """Whether no drain is to evict its running pod."""
    return job.spec.get("disruption") == PROTECT


def kept_metadata(job: Job) -> Kept:
    """What the spec has its objects labelled and annotated with, but for what its patch changes."""
    patched = (job.spec.get("podPatch") or {}).get("metadata") or {}
    own = {TTL: FOREVER if math.isinf(job.ttl) else str(math.ceil(job.ttl))}
    if job.spec.get("hold"):
        own[HOLD] = "true"
    users = {"labels": job.labels, "annotations": job.annotations}
    labels, annotations = (
        {key: value for key, value in given.items() if key not in (patched.get(field) or {})}
        for field, given in users.items()
    )
    labels.pop(MANAGED_BY, None)
    return {"labels": labels, "annotations": {**annotations, **own}}


def kept_mark(kept: Kept) -> str:
    """A digest of what is written, then its keys: they are removed once the spec has them not."""
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:8]
    return " ".join([digest, *(f"{field}/{key}" for field in kept for key in kept[field])])
