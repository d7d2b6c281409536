"""Give an object its name, namespace and the engine's labels, whatever the template says."""

from typing import Any

from engine.refs import pod_name
from engine.transform.context import TransformContext
from engine.wellknown import ATTEMPT, JOB, MANAGED_BY, MANAGER, RUN, SOURCE


def set_names_and_labels(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Names are deterministic, so that a create whose reply was lost meets AlreadyExists."""
    job, metadata = context.job, manifest.get("metadata") or {}
    own = {
        MANAGED_BY: MANAGER,
        JOB: job.name,
        RUN: job.run,
        ATTEMPT: str(context.attempt),
        SOURCE: context.source,
    }
    named = {
        **metadata,
        "name": pod_name(job.name, job.run, context.attempt),
        "labels": {**(metadata.get("labels") or {}), **own},
    }
    named.pop("generateName", None)
    if job.namespace:
        named["namespace"] = job.namespace
    else:
        named.pop("namespace", None)
    return {**manifest, "metadata": named}
