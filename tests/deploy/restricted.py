"""The fields by which a pod fits the Pod Security Standard `restricted`."""

from typing import Any

_VOLUMES = {"configMap", "secret", "emptyDir", "projected", "downwardAPI", "persistentVolumeClaim"}


def require_restricted(spec: dict[str, Any]) -> None:
    """Errors: AssertionError for a pod that a namespace of that standard would refuse."""
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for volume in spec.get("volumes", ()):
        assert volume.keys() - {"name"} <= _VOLUMES
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not any("hostPort" in port for port in container.get("ports", ()))
