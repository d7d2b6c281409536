"""Kubernetes' Pod Security Standards as of 1.36, judged on a manifest as the API server judges it.

`CONTROLS` has every control of both standards by the name that Kubernetes gives it. Sources:
kubernetes.io/docs/concepts/security/pod-security-standards, and `k8s.io/pod-security-admission`
for what the page leaves open.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.podsecurity import baseline, restricted
from engine.podsecurity.pod import Check, Violation


class Level(StrEnum):
    """How much a pod may do; each level holds the controls of the one before it."""

    PRIVILEGED = "privileged"
    """Everything."""
    BASELINE = "baseline"
    """Nothing that is known to lead to more rights."""
    RESTRICTED = "restricted"
    """What hardened pods need."""


@dataclass(frozen=True, slots=True)
class Control:
    """One control of a standard."""

    name: str
    """What Kubernetes calls it."""
    level: Level
    """The lowest level that has it."""
    check: Check
    """Finds what it forbids."""
    replaces: str = ""
    """The control of the level before that it takes the place of."""


CONTROLS: tuple[Control, ...] = (
    Control("appArmorProfile", Level.BASELINE, baseline.app_armor_profile),
    Control("capabilities_baseline", Level.BASELINE, baseline.capabilities),
    Control("hostNamespaces", Level.BASELINE, baseline.host_namespaces),
    Control("hostPathVolumes", Level.BASELINE, baseline.host_path_volumes),
    Control("hostPorts", Level.BASELINE, baseline.host_ports),
    Control("hostProbesAndHostLifecycle", Level.BASELINE, baseline.host_probes_and_lifecycle),
    Control("privileged", Level.BASELINE, baseline.privileged),
    Control("procMount", Level.BASELINE, baseline.proc_mount),
    Control("seLinuxOptions", Level.BASELINE, baseline.se_linux_options),
    Control("seccompProfile_baseline", Level.BASELINE, baseline.seccomp_profile),
    Control("sysctls", Level.BASELINE, baseline.sysctls),
    Control("windowsHostProcess", Level.BASELINE, baseline.windows_host_process),
    Control("allowPrivilegeEscalation", Level.RESTRICTED, restricted.allow_privilege_escalation),
    Control(
        "capabilities_restricted",
        Level.RESTRICTED,
        restricted.capabilities,
        replaces="capabilities_baseline",
    ),
    Control(
        "procMount_restricted",
        Level.RESTRICTED,
        baseline.proc_mount_anywhere,
        replaces="procMount",
    ),
    Control(
        "restrictedVolumes",
        Level.RESTRICTED,
        restricted.volumes,
        replaces="hostPathVolumes",
    ),
    Control("runAsNonRoot", Level.RESTRICTED, restricted.run_as_non_root),
    Control("runAsUser", Level.RESTRICTED, restricted.run_as_user),
    Control(
        "seccompProfile_restricted",
        Level.RESTRICTED,
        restricted.seccomp_profile,
        replaces="seccompProfile_baseline",
    ),
)


def controls_of(level: Level) -> tuple[Control, ...]:
    """The controls that hold at `level`."""
    levels = tuple(Level)[: tuple(Level).index(level) + 1]
    held = tuple(control for control in CONTROLS if control.level in levels)
    replaced = {control.replaces for control in held}
    return tuple(control for control in held if control.name not in replaced)


def evaluate(level: Level, pod: Mapping[str, Any]) -> Iterator[tuple[Control, Violation]]:
    """Everything in the manifest of a pod that `level` forbids, control by control."""
    for control in controls_of(level):
        for violation in control.check(pod):
            yield control, violation
