"""An object of an earlier attempt and what the next attempt would send, as two sides of a diff.

The answer to a dry run on the server is the other side: it has passed the same defaults and
admission, so every difference is a change.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from engine.render.manifests import MASK
from engine.transform.prefer_nodes import PREFERRED
from engine.wellknown import ATTEMPT, RUN

Manifest = Mapping[str, Any]
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
_TOKEN_VOLUME_NAME = "kube-api-access"  # noqa: S105 - a name
_SET_LATER = frozenset({"nodeName", "schedulingGates"})
"""Fields of a spec by which a running pod differs from one that was just created."""


def masked(manifest: Manifest) -> dict[str, Any]:
    """A Secret without its values; anything else as it is."""
    if manifest.get("kind") != "Secret":
        return dict(manifest)
    sides = [side for side in ("data", "stringData") if manifest.get(side)]
    return {**manifest, **{side: dict.fromkeys(manifest[side], MASK) for side in sides}}


def comparable(found: Manifest, manifest: Manifest) -> dict[str, Any]:
    """`found` without what only an object in the cluster has; secret values are masked.

    Of its labels those that `manifest` has are kept. Two attempts never have the same name: the
    earlier one gets that of the next.
    """
    name = manifest["metadata"]["name"]
    metadata = {"name": name, "namespace": manifest["metadata"]["namespace"]}
    for field in ("labels", "annotations"):
        wanted, values = manifest["metadata"].get(field) or {}, found["metadata"].get(field) or {}
        kept = {k: values[k] for k in wanted if k in values and k not in (RUN, ATTEMPT)}
        metadata |= {field: kept} if kept else {}
    bare = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
    rest = {k: v for k, v in found.items() if k not in bare and k != "status" and v is not None}
    if "spec" in rest:
        rest["spec"] = {k: v for k, v in rest["spec"].items() if k not in _SET_LATER}
        affinity = _without_preferred_nodes(rest["spec"].pop("affinity", None) or {})
        rest["spec"] |= {"affinity": affinity} if affinity else {}

    def renamed(text: str) -> str:
        """A token's volume has a random name."""
        if _TOKEN_VOLUME.fullmatch(text):
            return _TOKEN_VOLUME_NAME
        return name if text == found["metadata"]["name"] else text

    return masked({**bare, **map_values(rest, renamed)})


def _without_preferred_nodes(affinity: Mapping[str, Any]) -> dict[str, Any]:
    """A retried pod prefers the nodes that had its image: that is no change of the spec."""
    nodes = {k: v for k, v in (affinity.get("nodeAffinity") or {}).items() if k != PREFERRED}
    return {key: value for key, value in {**affinity, "nodeAffinity": nodes}.items() if value}


def map_values(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with `change` applied to its texts, before anything is encoded; keys are names."""
    if isinstance(value, Mapping):
        return {key: map_values(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [map_values(item, change) for item in value]
    return change(value) if isinstance(value, str) else value
