"""Strategic merge patch for pods.

Rules: Kubernetes' "Strategic Merge Patch" (sig-api-machinery, strategic-merge-patch.md) and the
`patchMergeKey` markers of the core/v1 PodSpec. No Python library implements them.
"""

from collections.abc import Mapping
from typing import Any

from engine.errors import PatchError

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "ownerReferences": "uid",
    "resourceClaims": "name",
    "schedulingGates": "name",
}
_SETS = frozenset({"finalizers"})
_DIRECTIVE = "$patch"


def strategic_merge(current: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`current` with `patch` applied; neither is changed.

    Null removes a field, `$patch: replace` or `delete` acts on the mapping it stands in, lists
    with a merge key merge by it, `$deleteFromPrimitiveList/x` and `$setElementOrder/x` are
    understood, every other list is replaced. Errors: PatchError.
    """
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive not in (None, "merge"):
        raise PatchError(f"$patch is {directive!r}", hint="one of: replace, delete, merge")
    merged = dict(current)
    for key, value in patch.items():
        if key == _DIRECTIVE or key.startswith("$setElementOrder/"):
            continue
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            merged[field] = _without(field, merged.get(field) or [], value)
        elif value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = strategic_merge(below if isinstance(below, Mapping) else {}, value)
        elif isinstance(value, list):
            below = merged.get(key)
            merged[key] = _merge_lists(key, below if isinstance(below, list) else [], value)
        else:
            merged[key] = value
    return merged


def _merge_lists(field: str, current: list[Any], patch: list[Any]) -> list[Any]:
    if field in _SETS:
        return [*current, *(item for item in patch if item not in current)]
    key = MERGE_KEYS.get(field)
    if key is None or not all(isinstance(item, Mapping) for item in [*current, *patch]):
        return patch
    if any(item.get(_DIRECTIVE) == "replace" and key not in item for item in patch):
        return [item for item in patch if item.get(_DIRECTIVE) != "replace"]
    merged: dict[Any, dict[str, Any]] = {item[key]: item for item in current if key in item}
    for item in patch:
        if not isinstance(item.get(key), str | int):
            raise PatchError(f"an item of {field} has no {key}", hint=f"lists merge by {key}")
        if item.get(_DIRECTIVE) == "delete":
            merged.pop(item[key], None)
        else:
            merged[item[key]] = strategic_merge(merged.get(item[key], {}), item)
    return list(merged.values())


def _without(field: str, current: Any, gone: Any) -> list[Any]:
    if not isinstance(current, list) or not isinstance(gone, list):
        raise PatchError(f"$deleteFromPrimitiveList/{field} needs a list on both sides")
    return [item for item in current if item not in gone]
