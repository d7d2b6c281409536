"""What a pod that has not started waits for: a node, an image, a configuration that works."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from engine.api.model import PullClass
from engine.status.containers import ContainerState, container_states, has_main_started, has_started
from engine.status.outcome import Outcome, Reason
from engine.status.pod_end import KUBELETS_REASONS, was_interrupted
from engine.times import parse_time

PULL_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "RegistryUnavailable",
    "ImageInspectError",
    "ErrImageNeverPull",
    "SignatureValidationFailed",
)
_CONFIG_ERROR = "CreateContainerConfigError"
_CRASH_LOOP = "CrashLoopBackOff"
_CONFIG_REASONS = (_CONFIG_ERROR, "CreateContainerError", "RunContainerError", _CRASH_LOOP)
_SIGNS: Mapping[PullClass, re.Pattern[str]] = {
    PullClass.UNAUTHORIZED: re.compile(
        "pull access denied|unauthorized|authentication required|authorization failed|"
        "no basic auth credentials|access to the resource is denied|403 forbidden"
    ),
    PullClass.TRANSIENT: re.compile(
        "dial tcp|connection refused|no such host|i/o timeout|tls handshake|request canceled|"
        r"client\.timeout exceeded|connection reset|context deadline exceeded|unexpected eof|"
        "500 internal server error|502 bad gateway|503 service unavailable|504 gateway timeout|"
        "too many requests|toomanyrequests"
    ),
    PullClass.NOT_FOUND: re.compile(
        "not found|manifest unknown|repository does not exist|"
        "is not present with pull policy of never"
    ),
}
"""The registry's words, in lower case. Messages of the first class often say "not found", too."""
_RATE_LIMITED = re.compile("too many requests|toomanyrequests")
_BACK_OFF = "back-off pulling image"
_KUBELET_QPS = "pull qps exceeded"
_CACHE_NOT_READY = "failed to sync"


def pull_errors(pod: Mapping[str, Any]) -> Iterator[ContainerState]:
    """Containers whose image can't be pulled; the kubelet's own rate limit is no such error."""
    for state in container_states(pod):
        is_limit = _KUBELET_QPS in state.message.lower()
        if state.waiting.get("reason") in PULL_REASONS and not is_limit:
            yield state


def pull_errors_beside_main(pod: Mapping[str, Any]) -> Iterator[ContainerState]:
    """Those of services that are to be started again while the main container runs."""
    if has_main_started(pod):
        yield from pull_errors(pod)


def has_pull_cause(state: ContainerState) -> bool:
    """Whether the kubelet says more than "Back-off pulling image …"."""
    words = state.message.lower()
    return bool(words) and not words.startswith(_BACK_OFF)


def classify_pull(message: str) -> PullClass:
    """Class of a pull failure by the registry's words."""
    words = message.lower()
    found = (pull_class for pull_class, signs in _SIGNS.items() if signs.search(words))
    return next(found, PullClass.OTHER)


def is_rate_limited(message: str) -> bool:
    """Whether the registry refuses because it was asked too often."""
    return _RATE_LIMITED.search(message.lower()) is not None


def read_invalid_image(pod: Mapping[str, Any]) -> Outcome | None:
    """InvalidImage, for a name that no registry could have."""
    for state in container_states(pod):
        if state.waiting.get("reason") == "InvalidImageName":
            words = state.waiting.get("message") or f'invalid image name "{state.image}"'
            return Outcome(Reason.INVALID_IMAGE, f"{state.name}: {words}")
    return None


def read_config_error(pod: Mapping[str, Any]) -> Outcome | None:
    """Outcome of a container that can't be created.

    What crashes beside the job's own work, once that has begun, is the job's own affair. A start
    that was interrupted is either tried again, as a service's is, or the pod's end a moment later.
    """
    begun = has_started(pod)
    for state in container_states(pod):
        if begun and (state.last_terminated or not state.is_own_work):
            continue
        reason = state.waiting.get("reason")
        if reason not in _CONFIG_REASONS:
            continue
        if was_interrupted(state.last_terminated if reason == _CRASH_LOOP else state.waiting):
            continue
        words = _config_words(state)
        if _CACHE_NOT_READY not in words:
            return Outcome(Reason.CONTAINER_CONFIG_ERROR, f"{state.name}: {words}")
    return None


def lacks_dependents(pod: Mapping[str, Any]) -> bool:
    """Whether a container waits for the pod's own Secret or ConfigMap, which have its name."""
    missing = f'"{pod["metadata"]["name"]}" not found'
    waiting = (one for one in container_states(pod) if one.waiting.get("reason") == _CONFIG_ERROR)
    return any(missing in one.message for one in waiting)


def _config_words(state: ContainerState) -> str:
    last = state.last_terminated
    code = last.get("exitCode")
    is_kubelets = last.get("reason") in KUBELETS_REASONS
    cause: str = (last.get("message") or "").strip() if is_kubelets else ""
    cause = cause or (f"exit code {code}" if code else "")
    reason: str = state.waiting["reason"]
    if reason == _CRASH_LOOP and cause:
        return cause
    return state.message or cause or reason


def read_start_cause(pod: Mapping[str, Any]) -> str:
    """The scheduler's words while unscheduled, else the container that is not there yet."""
    scheduled = _scheduled(pod)
    if scheduled.get("status") == "False":
        return f"not scheduled: {scheduled.get('message') or scheduled.get('reason', '')}"
    for state in container_states(pod):
        if state.is_sidecar and state.running and not state.is_ready:
            return f"service {state.name} runs, and is not ready"
        if state.waiting and not state.has_started:
            words = ": ".join(filter(None, (state.waiting.get("reason"), state.message)))
            return f"container {state.name} ({state.image}) has not started: {words}"
    if not (pod.get("spec") or {}).get("nodeName"):
        return "not scheduled: no scheduler has looked at the pod"
    return "the kubelet has not reported any container"


def scheduled_at(pod: Mapping[str, Any]) -> datetime | None:
    """When the pod was given its node; None while it has none."""
    scheduled = _scheduled(pod)
    is_so = scheduled.get("status") == "True"
    return parse_time(scheduled.get("lastTransitionTime")) if is_so else None


def _scheduled(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The condition PodScheduled; {} without one."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == "PodScheduled"), {})
