"""Strategic merge patch, by the types of Kubernetes' fields.

Rules: Kubernetes' "Strategic Merge Patch" (sig-api-machinery, strategic-merge-patch.md). No Python
library implements them.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from engine.api.kubernetes_schema import KubernetesSchema, Type
from engine.api.pod_fields import DIRECTIVE, DROP, ORDER, RETAIN, merge_key_of
from engine.errors import RenderError


def strategic_merge(
    kubernetes: KubernetesSchema, kind: Type, current: Mapping[str, Any], patch: Mapping[str, Any]
) -> dict[str, Any]:
    """`current`, which is of type `kind`, with `patch` applied; neither is changed.

    Null removes a field, `$patch: replace` or `delete` acts on the mapping or list it stands in,
    lists with a merge key merge by it, `$retainKeys`, `$deleteFromPrimitiveList/x` and
    `$setElementOrder/x` are understood, every other list is replaced. Errors: RenderError.
    """
    directive = patch.get(DIRECTIVE)
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive not in (None, "merge"):
        raise RenderError(f"$patch is {directive!r}", hint="one of: replace, delete, merge")
    merged = _retained(current, patch) if RETAIN in patch else dict(current)
    for key, value in patch.items():
        if key in (DIRECTIVE, RETAIN) or key.startswith(ORDER):
            continue
        if key.startswith(DROP):
            field = key.removeprefix(DROP)
            merged[field] = _without(field, merged.get(field) or [], value)
        elif value is None:
            merged.pop(key, None)
        else:
            below = kubernetes.below(kind, key)
            merged[key] = _merge(kubernetes, key, below, merged.get(key), value)
    for key, order in patch.items():
        field = key.removeprefix(ORDER)
        if key != field and isinstance(merged.get(field), list):
            merged[field] = _ordered(field, kubernetes.below(kind, field), merged[field], order)
    return merged


def _merge(kubernetes: KubernetesSchema, field: str, kind: Type, current: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return strategic_merge(
            kubernetes, kind, current if isinstance(current, Mapping) else {}, value
        )
    if isinstance(value, list) and "items" in kind:
        current = current if isinstance(current, list) else []
        return _merge_lists(kubernetes, field, kind, current, value)
    return value


def _merge_lists(
    kubernetes: KubernetesSchema, field: str, kind: Type, current: list[Any], patch: list[Any]
) -> list[Any]:
    key = merge_key_of(kind)
    if not key and kind.get("x-kubernetes-patch-strategy") == "merge":
        return [*current, *(item for item in patch if item not in current)]
    if not key or not all(isinstance(item, Mapping) for item in [*current, *patch]):
        return patch
    if any(item.get(DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if DIRECTIVE not in item]
    merged: list[Any] = [*current]
    places: dict[Any, list[int]] = defaultdict(list)
    for at, item in enumerate(current):
        places[item.get(key)].append(at)
    for item in patch:
        name = item.get(key)
        if not isinstance(name, str | int):
            raise RenderError(f"an item of {field} has no {key}", hint=f"lists merge by {key}")
        if item.get(DIRECTIVE) == "delete":
            for at in places.pop(name, ()):
                merged[at] = None
        elif places[name]:
            at = places[name][0]
            merged[at] = strategic_merge(kubernetes, kubernetes.item(kind), merged[at], item)
        else:
            places[name].append(len(merged))
            merged.append(strategic_merge(kubernetes, kubernetes.item(kind), {}, item))
    return [item for item in merged if item is not None]


def _ordered(field: str, kind: Type, items: list[Any], order: Any) -> list[Any]:
    """The items that `order` lists, in its order, and the others behind them."""
    if not isinstance(order, list):
        raise RenderError(f"{ORDER}{field} must be a list")
    key = merge_key_of(kind)

    def name_of(item: Any) -> str:
        return repr(item.get(key) if key and isinstance(item, Mapping) else item)

    ranks = {name_of(item): rank for rank, item in enumerate(order)}
    return sorted(items, key=lambda item: ranks.get(name_of(item), len(ranks)))


def _without(field: str, current: Any, gone: Any) -> list[Any]:
    if not isinstance(current, list) or not isinstance(gone, list):
        raise RenderError(f"{DROP}{field} needs a list on both sides")
    return [item for item in current if item not in gone]


def _retained(current: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    kept = patch[RETAIN]
    if not isinstance(kept, list):
        raise RenderError(f"{RETAIN} must be a list of fields")
    for key, value in patch.items():
        if value is not None and key not in kept and not key.startswith("$"):
            raise RenderError(f"{key} is set beside a {RETAIN} that doesn't name it")
    return {key: value for key, value in current.items() if key in kept}
