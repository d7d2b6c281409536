"""Twenty misspelt fields of a pod, at every depth: refused offline, and by every API server."""

import re
from dataclasses import dataclass
from typing import Any

_TERM = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
)
_MAIN = "spec.containers[0]"
_NAMES = {"containers": "main", "env": "A", "volumes": "v", "volumeMounts": "v"}


@dataclass(frozen=True, slots=True)
class Misspelt:
    """A path as the API names it, ending in a field that isn't there, and the field meant."""

    path: str
    meant: str

    @property
    def field(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def fragment(self) -> dict[str, Any]:
        """A part of a pod that holds nothing but the path, and names for the items on its way."""
        value: Any = 1
        for step in reversed(self.path.split(".")):
            found = re.fullmatch(r"(\w+)\[0\]", step)
            if found:
                name = _NAMES.get(found[1])
                value = {found[1]: [{**({"name": name} if name else {}), **value}]}
            else:
                value = {step: value}
        assert isinstance(value, dict)
        return value


MISSPELT = (
    Misspelt("metadata.lables", "labels"),
    Misspelt("spec.hostNetwrk", "hostNetwork"),
    Misspelt("spec.activeDeadlineSecond", "activeDeadlineSeconds"),
    Misspelt("spec.securityContext.runAsUsr", "runAsUser"),
    Misspelt("spec.securityContext.seccompProfile.localhostProfil", "localhostProfile"),
    Misspelt("spec.tolerations[0].tolerationSecond", "tolerationSeconds"),
    Misspelt("spec.affinity.nodeAffinty", "nodeAffinity"),
    Misspelt(f"{_TERM}.matchExpressions[0].operater", "operator"),
    Misspelt("spec.topologySpreadConstraints[0].labelSelector.matchLabel", "matchLabels"),
    Misspelt(f"{_MAIN}.imagePullPolcy", "imagePullPolicy"),
    Misspelt(f"{_MAIN}.securityContext.readonlyRootFilesystem", "readOnlyRootFilesystem"),
    Misspelt(f"{_MAIN}.securityContext.capabilities.drops", "drop"),
    Misspelt(f"{_MAIN}.resources.limit", "limits"),
    Misspelt(f"{_MAIN}.env[0].valueFrom.secretKeyRef.optinal", "optional"),
    Misspelt(f"{_MAIN}.envFrom[0].configMapRef.nmae", "name"),
    Misspelt(f"{_MAIN}.livenessProbe.httpGet.httpHeaders[0].vaule", "value"),
    Misspelt(f"{_MAIN}.lifecycle.preStop.exec.comand", "command"),
    Misspelt(f"{_MAIN}.volumeMounts[0].readonly", "readOnly"),
    Misspelt("spec.volumes[0].emptyDir.sizeLimt", "sizeLimit"),
    Misspelt(
        "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSecond",
        "expirationSeconds",
    ),
)


def laid_over(below: Any, above: Any) -> Any:
    """A manifest with a fragment on top; items of lists are met by their position."""
    if isinstance(below, dict) and isinstance(above, dict):
        merged = {key: laid_over(below.get(key), value) for key, value in above.items()}
        return {**below, **merged}
    if isinstance(below, list) and isinstance(above, list):
        both = [laid_over(old, new) for old, new in zip(below, above, strict=False)]
        return [*both, *above[len(below) :], *below[len(above) :]]
    return above
