"""Whether a pod is what the engine would have created, seen through defaults and admission."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.decide.situation import Pod
from engine.transform.prefer_nodes import PREFERRED
from engine.wellknown import RESERVED_PREFIX

_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}")
TOKEN_VOLUME = "kube-api-access"  # noqa: S105 - a name
"""What that volume of a service account's token is called instead."""
_SET_LATER = frozenset({"nodeName", "schedulingGates"})
"""Fields of a spec by which a pod that runs differs from one that was just made."""


def first_difference(pod: Pod, dry_run: Pod, manifest: Pod) -> str:
    """The first place in which `pod` is not what `dry_run` made of `manifest`; "" for none.

    Of the metadata counts what the manifest says, owners and finalizers: others may add labels and
    annotations to a pod, and TTLs are for anybody to change. Values are never part of the answer.
    """
    return next(_differences(_marks(pod, manifest), _marks(dry_run, manifest), "metadata"), "") or (
        next(_differences(spec_as_made(pod), spec_as_made(dry_run), "spec"), "")
    )


def _marks(pod: Pod, manifest: Pod) -> dict[str, Any]:
    metadata, own = pod["metadata"], manifest["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return {
        "labels": {key: labels.get(key) for key in own.get("labels") or {}},
        "annotations": {
            key: annotations.get(key)
            for key in own.get("annotations") or {}
            if not key.startswith(RESERVED_PREFIX)
        },
        "ownerReferences": metadata.get("ownerReferences") or [],
        "finalizers": metadata.get("finalizers") or [],
    }


def spec_as_made(pod: Pod) -> dict[str, Any]:
    """Without what comes later or is a preference, and the one name that admission draws by lot."""
    spec = {key: value for key, value in pod["spec"].items() if key not in _SET_LATER}
    made: dict[str, Any] = _without_lots({**spec, "affinity": _without_preferred_nodes(spec)})
    return made


def _without_preferred_nodes(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Which nodes had the image when the pod was made, nobody knows any more."""
    affinity = spec.get("affinity") or {}
    nodes = {k: v for k, v in (affinity.get("nodeAffinity") or {}).items() if k != PREFERRED}
    return {key: value for key, value in {**affinity, "nodeAffinity": nodes}.items() if value}


def _without_lots(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: TOKEN_VOLUME
            if key == "name" and isinstance(item, str) and _TOKEN_VOLUME.fullmatch(item)
            else _without_lots(item)
            for key, item in value.items()
        }
    return [_without_lots(item) for item in value] if isinstance(value, list) else value


def _differences(one: Any, other: Any, place: str) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(one.keys() | other.keys()):
            yield from _differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from _differences(mine, theirs, f"{place}[{index}]")
    elif one != other:
        yield place
