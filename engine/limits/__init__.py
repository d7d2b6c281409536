"""The operator's limits on the pod as it is sent, whatever it was made of.

`engine.api.checks` judges what isn't in a pod: times, attempts, namespaces, sources of secrets.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from engine.api.model import Job, Limits
from engine.errors import MAX_SHOWN, Diagnostic


def check_pod(pod: Mapping[str, Any], job: Job, limits: Limits) -> tuple[Diagnostic, ...]:
    """Everything in the final pod of `job` that the limits forbid, where it was asked for.

    At most `MAX_SHOWN` are reported.
    """
    if limits == Limits():
        return ()
    from engine.limits.pod_limits import exceeded  # noqa: PLC0415 - most engines have no limits
    from engine.limits.source_location import field_name, location_of  # noqa: PLC0415

    return tuple(
        Diagnostic(location_of(job, pod, path), f"the pod's {field_name(pod, path)} {words}", hint)
        for path, words, hint in islice(exceeded(pod, limits), MAX_SHOWN)
    )


def judges_pods(limits: Limits) -> bool:
    """Whether a spec of its own, with neither a patch nor a template, can exceed `limits`."""
    allowed = (limits.allowed_images, limits.allowed_service_accounts, limits.allowed_secrets)
    return allowed != (None, None, None)
