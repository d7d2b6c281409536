"""What may still change on a live Pod; everything else is refused."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from engine.sandbox.errors import FieldError, field_forbidden, field_invalid, field_required

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

_WORDS = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def pod_update_errors(old: Obj, new: Obj) -> list[FieldError]:
    """What of this change a Pod's spec doesn't allow."""
    before, after = old["spec"], new["spec"]
    out = _image_errors(after) + _deadline_errors(before, after) + _gate_errors(before, after)
    if out:
        return out
    expected = copy.deepcopy(after)
    for where in ("containers", "initContainers"):
        if len(before.get(where, ())) != len(after.get(where, ())):
            words = "pod updates may not add or remove containers"
            return [field_forbidden(f"spec.{where}", words)]
        for mine, theirs in zip(expected.get(where, ()), before.get(where, ()), strict=True):
            mine["image"] = theirs.get("image")
    if not _only_added(before, after):
        words = "existing toleration can not be modified except its tolerationSeconds"
        return [field_forbidden("spec.tolerations", words)]
    free = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    if before.get("schedulingGates") and _selector_narrowed(before, after):
        free.append("nodeSelector")
    for name in free:
        expected.pop(name, None)
        if name in before:
            expected[name] = before[name]
    return [] if expected == before else [field_forbidden("spec", _WORDS)]


def _image_errors(spec: Obj) -> list[FieldError]:
    return [
        field_required(f"spec.containers[{at}].image")
        for at, container in enumerate(spec.get("containers", ()))
        if not container.get("image")
    ]


def _deadline_errors(before: Obj, after: Obj) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    old, new = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if old is not None and new is None:
        return [field_invalid(path, None, "must not update from a positive integer to nil value")]
    if old is not None and new is not None and new > old:
        return [field_invalid(path, new, "must be less than or equal to previous value")]
    return []


def _gate_errors(before: Obj, after: Obj) -> list[FieldError]:
    have = [gate["name"] for gate in before.get("schedulingGates", ())]
    return [
        field_forbidden(
            "spec.schedulingGates",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for gate in after.get("schedulingGates", ())
        if gate["name"] not in have
    ]


def _only_added(before: Obj, after: Obj) -> bool:
    """Every old toleration is still there; only its seconds may differ."""

    def bare(toleration: Obj) -> Obj:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    have = [bare(toleration) for toleration in after.get("tolerations", ())]
    return all(bare(toleration) in have for toleration in before.get("tolerations", ()))


def _selector_narrowed(before: Obj, after: Obj) -> bool:
    old, new = before.get("nodeSelector", {}), after.get("nodeSelector", {})
    return all(new.get(key) == value for key, value in old.items())
