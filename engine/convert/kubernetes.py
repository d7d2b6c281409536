"""A Kubernetes Job, or a CronJob's template.

What a JobSpec has no field for becomes a pod patch.
"""

from collections.abc import Mapping
from functools import reduce
from operator import getitem
from typing import Any

from engine.api.yaml_reader import Document, Path
from engine.convert.conversion import Conversion, job_name, renamed
from engine.refs import MAIN_CONTAINER

SHAPES: Mapping[tuple[str, str], Path] = {
    ("batch/v1", "Job"): ("spec",),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec"),
}
"""Where the Job's own fields are."""

_OF_CONTAINER = {
    **{same: same for same in ("image", "command", "args", "workingDir", "resources")},
    "securityContext": "securityContext",
    "imagePullPolicy": "pullPolicy",
}
_OF_POD = {
    "serviceAccountName": "serviceAccountName",
    "automountServiceAccountToken": "automountServiceAccountToken",
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "securityContext": "podSecurityContext",
    "activeDeadlineSeconds": "timeout",
}
_SERVERS_OWN = ("batch.kubernetes.io/", "controller-uid", "job-name", "kubectl.kubernetes.io/")
_IMPLIED = {"completions": 1, "parallelism": 1, "completionMode": "NonIndexed"}
"""Fields that change nothing with these values."""


def convert_workload(document: Document) -> Conversion:
    """The JobSpec of a Job or of a CronJob's template, whose shape the caller has checked."""
    data = document.data
    made = Conversion(document, job_name(str(data["metadata"]["name"])))
    path = SHAPES[data["apiVersion"], data["kind"]]
    if data["kind"] == "CronJob":
        made.remark(("spec", "schedule"))
    job = dict(reduce(getitem, path, data))
    template = job.pop("template")
    if namespace := data["metadata"].get("namespace"):
        made.metadata["namespace"] = namespace
    for kind in ("labels", "annotations"):
        of_pod = template.get("metadata", {}).get(kind) or {}
        found = (data["metadata"].get(kind) or {}) | of_pod
        if kept := {k: v for k, v in found.items() if not k.startswith(_SERVERS_OWN)}:
            made.metadata[kind] = kept
    _convert_pod(made, dict(template["spec"]), (*path, "template", "spec"))
    if job.pop("suspend", False):
        made.spec["suspend"] = True
    if "activeDeadlineSeconds" in job:
        made.spec["timeout"] = job.pop("activeDeadlineSeconds")
        words = "a Job counts all of its retries, timeout one attempt"
        made.remark((*path, "activeDeadlineSeconds"), words)
    if "backoffLimit" in job:
        made.spec["retry"] = {"max": min(job.pop("backoffLimit"), 10)}
    else:
        words = "a Job is tried up to 6 times more; here retry.max says so"
        made.remark((*path, "template"), words)
    if "ttlSecondsAfterFinished" in job:
        seconds = job.pop("ttlSecondsAfterFinished")
        made.spec["ttlAfterFinished"] = {"success": seconds, "failure": seconds}
    for name, value in job.items():
        if _IMPLIED.get(name) != value:
            made.remark((*path, name))
    return made


def _convert_pod(made: Conversion, pod: dict[str, Any], path: Path) -> None:
    main, *others = pod.pop("containers")
    if pod.pop("restartPolicy", "Never") == "OnFailure":
        made.remark((*path, "restartPolicy"))
    made.spec.update(_container(made, "containers", main, MAIN_CONTAINER))
    for index, other in enumerate(others, 1):
        words = f"{other['name']} is a service here, and is stopped when {main['name']} ends"
        made.remark((*path, "containers", index, "name"), words)
        _add(made, "services", other)
    for container in pod.pop("initContainers", None) or ():
        is_sidecar = container.get("restartPolicy") == "Always"
        plain = {k: v for k, v in container.items() if k != "restartPolicy"}
        _add(made, "services" if is_sidecar else "initContainers", plain)
    made.spec.update(renamed(pod, _OF_POD))
    if logins := pod.pop("imagePullSecrets", None):
        names = [{"fromSecret": {"name": login["name"]}} for login in logins]
        made.spec["registryCredentials"] = names
    made.patch.update(pod)


def _add(made: Conversion, kind: str, container: dict[str, Any]) -> None:
    name = container["name"]
    fields = _container(made, "initContainers", container, name)
    made.spec.setdefault(kind, []).append({"name": name, **fields})


def _container(
    made: Conversion, kind: str, container: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """The fields of a container; those without a name here go to the pod patch."""
    rest = {k: v for k, v in container.items() if k != "name"}
    fields = renamed(rest, _OF_CONTAINER)
    others = []
    for variable in rest.pop("env", None) or ():
        key = variable.get("valueFrom", {}).get("secretKeyRef")
        if "valueFrom" not in variable:
            fields.setdefault("env", {})[variable["name"]] = variable.get("value", "")
        elif key and name == MAIN_CONTAINER and not key.get("optional"):
            source = {"fromSecret": {"name": key["name"], "key": key["key"]}}
            fields.setdefault("secrets", {})[variable["name"]] = source
        else:
            others.append(variable)
    rest |= {"env": others} if others else {}
    if rest:
        made.patch.setdefault(kind, []).append({"name": name, **rest})
    return fields
