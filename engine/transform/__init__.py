"""Pure render-time transforms, `(manifest, context) -> manifest`, one per file.

`TRANSFORMS` is the whole list in its order. The owner reference is the last step, once the pod's
UID is known (`set_owner_reference`). `check_job` says whether the final pod is a run-to-completion
job.
"""

from collections.abc import Callable
from typing import Any

from engine.transform.apply_pod_patch import apply_pod_patch
from engine.transform.context import TransformContext, metadata_error
from engine.transform.set_active_deadline import set_active_deadline
from engine.transform.set_controller import set_controller
from engine.transform.set_grace_period import set_grace_period
from engine.transform.set_host_users import set_host_users
from engine.transform.set_identity import set_identity
from engine.transform.set_last_words import set_last_words
from engine.transform.set_names_and_labels import set_names_and_labels
from engine.transform.set_pull_policy import set_pull_policy
from engine.transform.set_scheduling_gate import set_scheduling_gate
from engine.transform.set_security_defaults import set_security_defaults
from engine.transform.set_ttl_annotation import set_ttl_annotation

Transform = Callable[[dict[str, Any], TransformContext], dict[str, Any]]

TRANSFORMS: tuple[Transform, ...] = (
    apply_pod_patch,
    set_names_and_labels,
    set_controller,
    set_pull_policy,
    set_active_deadline,
    set_grace_period,
    set_identity,
    set_last_words,
    set_ttl_annotation,
    set_scheduling_gate,
    set_security_defaults,
    set_host_users,
)


def transform(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """`manifest` after every transform, in their order; the input is left as it is.

    Errors: RenderError; also where the template set metadata that only the engine may set, on which
    pruning, holds and ownership rely.
    """
    if fault := metadata_error(manifest):
        raise context.template_error(manifest, fault)
    for step in TRANSFORMS:
        manifest = step(manifest, context)
    return manifest
