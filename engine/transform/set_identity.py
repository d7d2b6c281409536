"""Give each container the names of its job, run and attempt, and a number to fence off older pods.

The number is only known at create. So it is an annotation, and the variable refers to that.
"""

from typing import Any

from engine.transform.context import TransformContext, with_containers
from engine.wellknown import ATTEMPT, FENCE, RUN

_FROM_METADATA = {
    "ENGINE_RUN": f"labels['{RUN}']",
    "ENGINE_ATTEMPT": f"labels['{ATTEMPT}']",
    "ENGINE_FENCE": f"annotations['{FENCE}']",
}
"""Not as values: two runs would differ in them."""


def set_identity(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """A variable of that name which a container has already stays."""
    if manifest["kind"] != "Pod":
        return manifest
    job = context.job
    own: list[dict[str, Any]] = [
        {"name": "ENGINE_JOB", "value": f"{job.namespace}/{job.name}".lstrip("/")}
    ]
    for name, path in _FROM_METADATA.items():
        own.append({"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{path}"}}})

    def change(container: dict[str, Any]) -> dict[str, Any]:
        given = container.get("env") or []
        named = {variable["name"] for variable in given}
        return {**container, "env": [*(one for one in own if one["name"] not in named), *given]}

    return with_containers(manifest, change)
