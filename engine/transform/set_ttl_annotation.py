"""Write on every object after how many seconds it may be pruned, or that it may not."""

import math
from typing import Any

from engine.durations import FOREVER
from engine.transform.context import TransformContext, with_field
from engine.wellknown import HOLD, TTL


def set_ttl_annotation(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The TTL in whole seconds, or `forever`; and the hold, if the spec asks for one."""
    job = context.job
    ttl = FOREVER if math.isinf(job.ttl) else str(math.ceil(job.ttl))
    marked = with_field(manifest, "metadata", "annotations", TTL, value=ttl)
    if not job.spec.get("hold"):
        return marked
    return with_field(marked, "metadata", "annotations", HOLD, value="true")
