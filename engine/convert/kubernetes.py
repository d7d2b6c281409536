"""A Kubernetes Job, or a CronJob's template.

What a JobSpec has no field for becomes a pod patch.
"""

from collections.abc import Mapping
from typing import Any

from engine.api.yaml_reader import Document, Path
from engine.convert.conversion import Conversion
from engine.refs import MAIN_CONTAINER

SHAPES: Mapping[tuple[str, str], Path] = {
    ("batch/v1", "Job"): ("spec",),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec"),
}
"""Where the Job's own fields are."""

_SAME = ("image", "command", "args", "workingDir", "resources", "securityContext")
_POD_FIELDS = {
    "serviceAccountName": "serviceAccountName",
    "automountServiceAccountToken": "automountServiceAccountToken",
    "nodeSelector": "nodeSelector",
    "tolerations": "tolerations",
    "securityContext": "podSecurityContext",
    "activeDeadlineSeconds": "timeout",
}
_SERVERS_OWN = ("batch.kubernetes.io/", "controller-uid", "job-name", "kubectl.kubernetes.io/")
_IMPLIED = {
    "completions": 1,
    "parallelism": 1,
    "completionMode": "NonIndexed",
    "podReplacementPolicy": "TerminatingOrFailed",
    "manualSelector": False,
    "suspend": False,
    "selector": None,
}
"""Fields that change nothing with these values; None is any value."""
_BY_HAND = {
    "completions": "use matrix, one job for each element",
    "parallelism": "use matrix, one job for each element",
    "completionMode": "use matrix, whose element replaces the index",
    "podFailurePolicy": "retry.on names the outcomes that are retried",
    "suspend": "the engine starts a job when its spec is applied",
    "schedule": "a scheduler changes spec.rerun, and the job runs again",
}


def convert_workload(document: Document) -> Conversion:
    """The JobSpec of a Job or of a CronJob's template, whose shape the caller has checked."""
    data = document.data
    made = Conversion(document, str(data["metadata"]["name"]))
    path = SHAPES[data["apiVersion"], data["kind"]]
    if data["kind"] == "CronJob":
        made.remark(("spec", "schedule"), _BY_HAND["schedule"])
    job = data
    for step in path:
        job = job[step]
    template = job["template"]
    if namespace := data["metadata"].get("namespace"):
        made.metadata["namespace"] = namespace
    for kind in ("labels", "annotations"):
        found = {**(data["metadata"].get(kind) or {})}
        found |= template.get("metadata", {}).get(kind) or {}
        kept = {k: v for k, v in found.items() if not k.startswith(_SERVERS_OWN)}
        if kept:
            made.metadata[kind] = kept
    _convert_pod(made, dict(template["spec"]), (*path, "template", "spec"))
    _convert_tries(made, job, path)
    return made


def _convert_tries(made: Conversion, job: Mapping[str, Any], path: Path) -> None:
    for name, value in job.items():
        match name:
            case "template":
                pass
            case "activeDeadlineSeconds":
                made.spec["timeout"] = value
                made.remark((*path, name), "a Job counts all of its retries, timeout one attempt")
            case "backoffLimit":
                made.spec["retry"] = {"max": min(value, 10)}
            case "ttlSecondsAfterFinished":
                made.spec["ttlAfterFinished"] = {"success": value, "failure": value}
            case _ if name not in _IMPLIED or _IMPLIED[name] not in (None, value):
                made.remark((*path, name), _BY_HAND.get(name, "a JobSpec has no such field"))
    if "backoffLimit" not in job:
        made.remark((*path, "template"), "a Job tries 6 times more; retry.max says it here")


def _convert_pod(made: Conversion, pod: dict[str, Any], path: Path) -> None:
    main, *others = pod.pop("containers")
    if pod.pop("restartPolicy", "Never") == "OnFailure":
        words = "a container is never restarted in its pod; retry starts a new pod"
        made.remark((*path, "restartPolicy"), words)
    made.spec.update(_convert_container(made, main, "containers", MAIN_CONTAINER))
    for index, other in enumerate(others, 1):
        words = f"{other['name']} is a service here, and is stopped when {main['name']} ends"
        made.remark((*path, "containers", index, "name"), words)
        _add(made, "services", other)
    for container in pod.pop("initContainers", None) or ():
        is_sidecar = container.get("restartPolicy") == "Always"
        plain = {k: v for k, v in container.items() if k != "restartPolicy"}
        _add(made, "services" if is_sidecar else "initContainers", plain)
    for name, ours in _POD_FIELDS.items():
        if name in pod:
            made.spec[ours] = pod.pop(name)
    if logins := pod.pop("imagePullSecrets", None):
        made.spec["registryCredentials"] = [
            {"fromSecret": {"name": login["name"]}} for login in logins
        ]
    if pod:
        made.patch(**pod)


def _add(made: Conversion, kind: str, container: dict[str, Any]) -> None:
    name = container["name"]
    fields = _convert_container(made, container, "initContainers", name)
    made.spec.setdefault(kind, []).append({"name": name, **fields})


def _convert_container(
    made: Conversion, container: dict[str, Any], kind: str, name: str
) -> dict[str, Any]:
    """The fields of a container; those without a name here go to the pod patch."""
    rest = {k: v for k, v in container.items() if k != "name"}
    fields = {same: rest.pop(same) for same in _SAME if same in rest}
    if policy := rest.pop("imagePullPolicy", None):
        fields["pullPolicy"] = policy
    plain, secrets, others = {}, {}, []
    for variable in rest.pop("env", None) or ():
        key = variable.get("valueFrom", {}).get("secretKeyRef")
        if "valueFrom" not in variable:
            plain[variable["name"]] = variable.get("value", "")
        elif key and name == MAIN_CONTAINER and not key.get("optional"):
            secrets[variable["name"]] = {"fromSecret": {"name": key["name"], "key": key["key"]}}
        else:
            others.append(variable)
    fields |= {"env": plain} if plain else {}
    fields |= {"secrets": secrets} if secrets else {}
    made.patch_container(kind, name, rest | ({"env": others} if others else {}))
    return fields
