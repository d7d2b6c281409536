"""Refuse what no transform could reach into: a template or a pod patch may make anything."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from engine.podsecurity.pod import CONTAINER_FIELDS
from engine.transform.context import TransformContext
from engine.transform.manifest_edit import is_pod
from engine.transform.prefer_nodes import PREFERRED

_EVERY = "[]"
_WORDS: Mapping[type, str] = {dict: "a mapping", list: "a list", str: "a string"}
_Rule = tuple[tuple[str, ...], type]
"""Where something stands, if it is there, and what it has to be."""
_CONTAINER: tuple[_Rule, ...] = (
    ((), dict),
    (("name",), str),
    (("image",), str),
    (("imagePullPolicy",), str),
    (("securityContext",), dict),
    (("securityContext", "capabilities"), dict),
    (("securityContext", "capabilities", "add"), list),
    (("securityContext", "capabilities", "add", _EVERY), str),
)
_OBJECT: tuple[_Rule, ...] = (
    (("metadata",), dict),
    (("metadata", "labels"), dict),
    (("metadata", "annotations"), dict),
)
_POD: tuple[_Rule, ...] = (
    (("spec",), dict),
    (("spec", "securityContext"), dict),
    (("spec", "affinity"), dict),
    (("spec", "affinity", "nodeAffinity"), dict),
    (("spec", "affinity", "nodeAffinity", PREFERRED), list),
    (("spec", "schedulingGates"), list),
    (("spec", "schedulingGates", _EVERY), dict),
    (("spec", "volumes"), list),
    (("spec", "volumes", _EVERY), dict),
    (("spec", "volumes", _EVERY, "image"), dict),
    (("spec", "volumes", _EVERY, "image", "reference"), str),
    *((("spec", field), list) for field in CONTAINER_FIELDS),
)


def check_shape(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The manifest as it is. Errors: TemplateRenderError when its template made something else."""
    fault = shape_error(manifest)
    if fault:
        raise context.template_error(manifest, fault)
    return manifest


def shape_error(manifest: Mapping[str, Any]) -> str:
    """What is not what it must be, as `spec.containers must be a list`; "" if all is well."""
    pod = is_pod(manifest)
    fault = _mismatch([("", manifest)], (*_OBJECT, *(_POD if pod else ())))
    if fault or not pod:
        return fault
    spec = manifest.get("spec")
    if not spec:
        return "spec is missing"
    listed = [
        [(f"spec.{field}[{index}]", item) for index, item in enumerate(spec.get(field) or ())]
        for field in CONTAINER_FIELDS
    ]
    for containers in listed:
        fault = _mismatch(containers, _CONTAINER)
        if fault:
            return fault
    return next((f"{at} has no name" for at, item in chain(*listed) if not item.get("name")), "")


def _mismatch(roots: Sequence[tuple[str, Any]], rules: Iterable[_Rule]) -> str:
    """What is of another type than a rule says, below any of `roots`: each has its place."""
    for path, kind in rules:
        for root_place, root in roots:
            for place, value in _values(root, path, root_place):
                if not isinstance(value, kind):
                    return f"{place} must be {_WORDS[kind]}"
    return ""


def _values(value: Any, path: tuple[str, ...], place: str = "") -> Iterator[tuple[str, Any]]:
    """(place, value) of all that stands at `path`; what is left out or null is passed over."""
    if not path:
        yield place, value
        return
    step, rest = path[0], path[1:]
    if step == _EVERY:
        for index, item in enumerate(value):
            yield from _values(item, rest, f"{place}[{index}]")
    elif value.get(step) is not None:
        yield from _values(value[step], rest, f"{place}.{step}" if place else step)
