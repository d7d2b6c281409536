"""The controls of the standard `restricted`, beyond those of `baseline`."""

from collections.abc import Iterator

from engine.podsecurity.baseline import PROFILES
from engine.podsecurity.pod import (
    Pod,
    Violation,
    containers,
    entries,
    field_of,
    in_user_namespace,
    is_windows,
    pod_and_containers,
    violations,
)

VOLUME_TYPES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image",
    "persistentVolumeClaim", "projected", "secret",
)  # fmt: skip


def allow_privilege_escalation(pod: Pod) -> Iterator[Violation]:
    """No process can get more rights than the one that started it."""
    for path, container in () if is_windows(pod) else containers(pod):
        if field_of(container, "securityContext", "allowPrivilegeEscalation") is not False:
            field = ("securityContext", "allowPrivilegeEscalation")
            yield Violation((*path, *field), "must be false")


def capabilities(pod: Pod) -> Iterator[Violation]:
    """Containers drop all capabilities, and add NET_BIND_SERVICE at most."""
    for path, container in () if is_windows(pod) else containers(pod):
        field = (*path, "securityContext", "capabilities")
        dropped = entries(container, "securityContext", "capabilities", "drop")
        if "ALL" not in (name for _, name in dropped):
            yield Violation((*field, "drop"), "must have ALL")
        for index, name in entries(container, "securityContext", "capabilities", "add"):
            if name != "NET_BIND_SERVICE":
                yield Violation((*field, "add", index), "must be NET_BIND_SERVICE")


def volumes(pod: Pod) -> Iterator[Violation]:
    """Volumes hold data of the pod or of the cluster; one without a type is an emptyDir."""
    for index, volume in entries(pod, "spec", "volumes"):
        types = [key for key, value in volume.items() if key != "name" and value is not None]
        if types and not any(name in VOLUME_TYPES for name in types):
            path = ("spec", "volumes", index, types[0])
            yield Violation(path, f"must be one of {', '.join(VOLUME_TYPES)}")


def run_as_non_root(pod: Pod) -> Iterator[Violation]:
    """Every container says that it doesn't run as root, unless root is nobody on the node."""
    if not in_user_namespace(pod):
        yield from _set_everywhere(pod, "runAsNonRoot", allowed=(True,), message="must be true")


def run_as_user(pod: Pod) -> Iterator[Violation]:
    """No user is 0, unless that is nobody on the node."""
    if not in_user_namespace(pod):
        yield from violations(
            pod_and_containers(pod), "securityContext", "runAsUser", allowed=bool,
            message="must not be 0",
        )  # fmt: skip


def seccomp_profile(pod: Pod) -> Iterator[Violation]:
    """Every container has a seccomp profile, its own or the pod's."""
    if not is_windows(pod):
        yield from _set_everywhere(
            pod, "seccompProfile", "type",
            allowed=PROFILES, message=f"must be {' or '.join(PROFILES)}",
        )  # fmt: skip


def _set_everywhere(
    pod: Pod, *field: str, allowed: tuple[object, ...], message: str
) -> Iterator[Violation]:
    """`field` has an allowed value wherever it is set, and is set in the pod or each container."""
    found = [*violations(
        pod_and_containers(pod), "securityContext", *field,
        allowed=allowed.__contains__, message=message,
    )]  # fmt: skip
    yield from found
    of_pod, *of_containers = (
        field_of(holder, "securityContext", *field) for _, holder in pod_and_containers(pod)
    )
    if not found and of_pod is None and None in of_containers:
        yield Violation(
            ("spec", "securityContext", *field), f"{message}, or that of each container"
        )
