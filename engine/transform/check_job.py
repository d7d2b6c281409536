"""What keeps a pod from running to completion: a template or a pod patch may make any pod."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from engine.api.pod_fields import Path, containers, entries, field_of
from engine.api.schema_messages import show
from engine.errors import MAX_SHOWN
from engine.refs import MAIN_CONTAINER

_POLICY = "Never"


class JobFault(Struct, frozen=True):
    """One thing by which a pod is no run-to-completion job."""

    path: Path
    """The field; if it is missing, the nearest one above it."""
    message: str
    """The problem, in words that follow `a pod in which`."""
    hint: str
    """What the reader can do."""


def job_faults(pod: Mapping[str, Any]) -> tuple[JobFault, ...]:
    """Everything by which `pod` is no run-to-completion job, within the bound on problems.

    Its shape has been checked. A container may have any `restartPolicy`: that of a sidecar is
    Always.
    """
    faults = []
    policy = field_of(pod, "spec", "restartPolicy")
    if not policy:
        hint = f"a job runs to completion: write {_POLICY}, for without it the pod never ends"
        faults.append(JobFault(("spec",), "spec.restartPolicy is missing", hint))
    elif policy != _POLICY:
        hint = f"a job runs to completion: it has to be {_POLICY}; spec.retry tries again"
        faults.append(
            JobFault(("spec", "restartPolicy"), f"spec.restartPolicy is {show(policy)}", hint)
        )
    if all(item["name"] != MAIN_CONTAINER for _, item in entries(pod, "spec", "containers")):
        message = f"none of spec.containers is named {MAIN_CONTAINER}"
        hint = f"the job's own container is named {MAIN_CONTAINER}: its end is the job's"
        faults.append(JobFault(("spec", "containers"), message, hint))
    paths = {item["name"]: path for path, item in containers(pod)}
    for name, count in Counter(item["name"] for _, item in containers(pod)).items():
        if count > 1:
            hint = "each needs a name of its own, init containers and services among them"
            faults.append(JobFault(paths[name], f"two containers are named {name}", hint))
    volumes = {item["name"] for _, item in entries(pod, "spec", "volumes")}
    for path, item in containers(pod):
        for mount in item.get("volumeMounts") or ():
            if mount.get("name") not in volumes:
                message = f"container {item['name']} mounts {show(mount.get('name'))}"
                faults.append(JobFault(path, message, "no volume of the pod has that name"))
    return tuple(faults[:MAX_SHOWN])
