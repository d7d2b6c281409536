"""Run a transform and hold it to what every transform promises."""

import copy
from typing import Any

from engine.transform import Transform
from engine.transform.context import TransformContext


def apply(step: Transform, manifest: dict[str, Any], known: TransformContext) -> dict[str, Any]:
    """Result of `step`, after a look that the input is as it was and that twice is like once."""
    before = copy.deepcopy(manifest)
    after = step(manifest, known)
    assert manifest == before, "the input was changed"
    assert step(after, known) == after, "a second time changes something"
    return after
