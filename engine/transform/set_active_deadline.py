"""Turn the job's timeout into `activeDeadlineSeconds`.

It has to be there at create: a quota's scope (Terminating, NotTerminating) isn't computed again.
"""

from typing import Any

from engine.transform.context import TransformContext, with_field


def set_active_deadline(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Nothing when the feature is off."""
    job = context.job
    if not job.features.active_deadline_seconds or manifest["kind"] != "Pod":
        return manifest
    return with_field(manifest, "spec", "activeDeadlineSeconds", value=job.deadline_seconds)
