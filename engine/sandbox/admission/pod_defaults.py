"""What the server fills into a Pod, as far as a reader of the Pod sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import quantity
from engine.wellknown import GRACE_PERIOD, default_pull_policy

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_DEFAULT_MODE = 420
_NO_EXECUTE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def default_pod(pod: Obj) -> None:
    """Fill a decoded Pod's spec in place; idempotent, as it also runs on every update."""
    spec = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", GRACE_PERIOD)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes", ()):
        _default_volume(volume)
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        _default_container(container)


def admit_pod(pod: Obj) -> None:
    """What admission adds at create: priority and the tolerations that ride out a short outage."""
    spec = pod["spec"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.get("tolerations", [])
    for key in _NO_EXECUTE:
        if not any(_covers(toleration, key) for toleration in tolerations):
            tolerations = [
                *tolerations,
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ]
    spec["tolerations"] = tolerations


def initial_status(pod: Obj) -> Obj:
    """The status that a new Pod gets from the server."""
    status: Obj = {"phase": "Pending", "qosClass": qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
            }
        ]
    return status


def qos_class(spec: Obj) -> str:
    """Guaranteed, Burstable or BestEffort, by its containers' resources."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    guaranteed, best_effort = True, True
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = _compute(resources.get("requests")), _compute(resources.get("limits"))
        if requests or limits:
            best_effort = False
        if set(limits) != {"cpu", "memory"} or any(
            requests.get(name, limit) != limit for name, limit in limits.items()
        ):
            guaranteed = False
    if best_effort:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _compute(amounts: Obj | None) -> Obj:
    parsed = {name: quantity.parse(amount) for name, amount in (amounts or {}).items()}
    return {name: amount for name, amount in parsed.items() if name in ("cpu", "memory") and amount}


def _covers(toleration: Obj, key: str) -> bool:
    same_key: bool = toleration.get("key", key) == key
    return same_key and toleration.get("effect", "NoExecute") == "NoExecute"


def _default_container(container: Obj) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = default_pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **resources.get("requests", {})}
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        if field := variable.get("valueFrom", {}).get("fieldRef"):
            field.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            probe = container[name]
            for key, value in _PROBE.items():
                probe.setdefault(key, value)
            if http := probe.get("httpGet"):
                http.setdefault("path", "/")
                http.setdefault("scheme", "HTTP")


def _default_volume(volume: Obj) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "projected", "downwardAPI"):
        if name in volume:
            volume[name].setdefault("defaultMode", _DEFAULT_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
