"""Write on every object after how many seconds it may be pruned."""

import math
from typing import Any

from engine.transform.context import TransformContext
from engine.transform.manifest_edit import with_field
from engine.wellknown import TTL


def set_ttl_annotation(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The TTL in whole seconds, on every object."""
    seconds = str(math.ceil(context.job.ttl))
    return with_field(manifest, "metadata", "annotations", TTL, value=seconds)
