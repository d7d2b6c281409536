"""Turn the job's timeout into `activeDeadlineSeconds`.

It has to be there at create: a quota's scope (Terminating, NotTerminating) isn't computed again.
"""

import math
from typing import Any

from engine.transform.context import TransformContext
from engine.transform.manifest_edit import is_pod, with_field


def set_active_deadline(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """Whole seconds, rounded up, at least 1; nothing when the feature is off."""
    timeout = context.job.timeout
    if timeout is None or not is_pod(manifest):
        return manifest
    seconds = max(1, math.ceil(timeout))
    return with_field(manifest, "spec", "activeDeadlineSeconds", value=seconds)
