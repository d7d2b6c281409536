"""The controls of the standard `baseline`."""

from collections.abc import Iterator

from engine.podsecurity.pod import (
    Pod,
    Violation,
    containers,
    entries,
    field_of,
    in_user_namespace,
    pod_and_containers,
    violations,
)

APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
DEFAULT_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
PROFILES = ("RuntimeDefault", "Localhost")
SELINUX_TYPES = ("container_t", "container_init_t", "container_kvm_t", "container_engine_t")
SAFE_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
_HOST_FIELDS = tuple(
    (*handler, action, "host")
    for handler in (
        ("livenessProbe",),
        ("readinessProbe",),
        ("startupProbe",),
        ("lifecycle", "postStart"),
        ("lifecycle", "preStop"),
    )
    for action in ("httpGet", "tcpSocket")
)


def app_armor_profile(pod: Pod) -> Iterator[Violation]:
    """AppArmor's profile isn't switched off, in the field or in the annotation before it."""
    yield from violations(
        pod_and_containers(pod),
        "securityContext", "appArmorProfile", "type",
        allowed=PROFILES.__contains__,
        message=f"must be {' or '.join(PROFILES)}",
    )  # fmt: skip
    for key, value in (field_of(pod, "metadata", "annotations") or {}).items():
        is_allowed = value in (None, "", "runtime/default") or value.startswith("localhost/")
        if key.startswith(APP_ARMOR_ANNOTATION) and not is_allowed:
            path = ("metadata", "annotations", key)
            yield Violation(path, "must be runtime/default or localhost/PROFILE")


def capabilities(pod: Pod) -> Iterator[Violation]:
    """No capability is added to those that containers have by default."""
    for path, container in containers(pod):
        for index, name in entries(container, "securityContext", "capabilities", "add"):
            if name not in DEFAULT_CAPABILITIES:
                yield Violation(
                    (*path, "securityContext", "capabilities", "add", index),
                    f"must be one of {', '.join(sorted(DEFAULT_CAPABILITIES))}",
                )


def host_namespaces(pod: Pod) -> Iterator[Violation]:
    """The pod has a network, processes and IPC of its own."""
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if field_of(pod, "spec", field):
            yield Violation(("spec", field), "must be false")


def host_path_volumes(pod: Pod) -> Iterator[Violation]:
    """No volume is a path of the node."""
    for index, volume in entries(pod, "spec", "volumes"):
        if field_of(volume, "hostPath") is not None:
            yield Violation(("spec", "volumes", index, "hostPath"), "must not be set")


def host_ports(pod: Pod) -> Iterator[Violation]:
    """No container takes a port of the node."""
    for path, container in containers(pod):
        for index, port in entries(container, "ports"):
            if field_of(port, "hostPort"):
                yield Violation((*path, "ports", index, "hostPort"), "must not be set")


def host_probes_and_lifecycle(pod: Pod) -> Iterator[Violation]:
    """No probe and no hook makes the kubelet call another host."""
    for field in _HOST_FIELDS:
        yield from violations(containers(pod), *field, allowed=_is_empty, message="must not be set")


def privileged(pod: Pod) -> Iterator[Violation]:
    """No container is privileged."""
    yield from violations(
        containers(pod), "securityContext", "privileged", allowed=_is_empty, message="must be false"
    )


def proc_mount(pod: Pod) -> Iterator[Violation]:
    """The masks over /proc stay, unless the pod is in a user namespace."""
    if not in_user_namespace(pod):
        yield from proc_mount_anywhere(pod)


def proc_mount_anywhere(pod: Pod) -> Iterator[Violation]:
    """The masks over /proc stay."""
    yield from violations(
        containers(pod),
        "securityContext", "procMount",
        allowed=("Default",).__contains__,
        message="must be Default",
    )  # fmt: skip


def se_linux_options(pod: Pod) -> Iterator[Violation]:
    """SELinux' type is one for containers, its user and role aren't set."""
    yield from violations(
        pod_and_containers(pod),
        "securityContext", "seLinuxOptions", "type",
        allowed=("", *SELINUX_TYPES).__contains__,
        message=f"must be one of {', '.join(SELINUX_TYPES)}",
    )  # fmt: skip
    for field in ("user", "role"):
        yield from violations(
            pod_and_containers(pod),
            "securityContext", "seLinuxOptions", field,
            allowed=_is_empty,
            message="must not be set",
        )  # fmt: skip


def seccomp_profile(pod: Pod) -> Iterator[Violation]:
    """Seccomp isn't switched off."""
    yield from violations(
        pod_and_containers(pod),
        "securityContext", "seccompProfile", "type",
        allowed=PROFILES.__contains__,
        message=f"must be {' or '.join(PROFILES)}",
    )  # fmt: skip


def sysctls(pod: Pod) -> Iterator[Violation]:
    """Every sysctl is the pod's alone and can't harm another one."""
    for index, sysctl in entries(pod, "spec", "securityContext", "sysctls"):
        if field_of(sysctl, "name") not in SAFE_SYSCTLS:
            path = ("spec", "securityContext", "sysctls", index, "name")
            yield Violation(path, f"must be one of {', '.join(sorted(SAFE_SYSCTLS))}")


def windows_host_process(pod: Pod) -> Iterator[Violation]:
    """No container is a process of a Windows node."""
    yield from violations(
        pod_and_containers(pod),
        "securityContext", "windowsOptions", "hostProcess",
        allowed=_is_empty,
        message="must be false",
    )  # fmt: skip


def _is_empty(value: object) -> bool:
    return not value
