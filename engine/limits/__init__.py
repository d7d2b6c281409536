"""The operator's limits on the pod as it is sent, whatever it was made of.

What a spec itself asks for is judged by `engine.api.checks`, before there is a pod.
"""

from collections.abc import Mapping
from itertools import chain, islice
from typing import Any

from engine.api.model import Job, Limits
from engine.errors import Diagnostic
from engine.limits.pod_limits import POD_LIMITS
from engine.limits.written import field_name, location_of

_MOST = 100


def check_pod(pod: Mapping[str, Any], job: Job, limits: Limits) -> tuple[Diagnostic, ...]:
    """Everything in the final pod of `job` that the limits forbid, where it was asked for.

    No more is told than can be read.
    """
    return tuple(
        Diagnostic(
            location_of(job, pod, excess.path),
            f"the pod's {field_name(pod, excess.path)} {excess.message}",
            excess.hint,
        )
        for excess in islice(chain.from_iterable(limit(pod, limits) for limit in POD_LIMITS), _MOST)
    )
