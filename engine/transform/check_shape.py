"""Refuse what no transform could reach into: a template or a pod patch may make anything."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.errors import TemplateRenderError
from engine.podsecurity.pod import CONTAINER_FIELDS
from engine.transform.context import TransformContext
from engine.transform.manifest_edit import is_pod
from engine.transform.prefer_nodes import PREFERRED

_EVERY = "[]"
_WORDS: Mapping[type, str] = {dict: "a mapping", list: "a list", str: "a string"}
_CONTAINER: tuple[tuple[tuple[str, ...], type], ...] = (
    ((), dict),
    (("name",), str),
    (("image",), str),
    (("imagePullPolicy",), str),
    (("securityContext",), dict),
    (("securityContext", "capabilities"), dict),
    (("securityContext", "capabilities", "add"), list),
    (("securityContext", "capabilities", "add", _EVERY), str),
)
_OBJECT: tuple[tuple[tuple[str, ...], type], ...] = (
    (("metadata",), dict),
    (("metadata", "labels"), dict),
    (("metadata", "annotations"), dict),
)
_POD: tuple[tuple[tuple[str, ...], type], ...] = (
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
    *(
        (("spec", field, _EVERY, *path), kind)
        for field in CONTAINER_FIELDS
        for path, kind in _CONTAINER
    ),
)


def check_shape(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """The manifest as it is. Errors: TemplateRenderError when its template made something else."""
    fault = shape_error(manifest)
    if fault:
        raise TemplateRenderError(
            f"the template set {context.job.spec['template']} makes a {manifest['kind']} "
            f"in which {fault}",
            where=context.job.place,
        )
    return manifest


def shape_error(manifest: Mapping[str, Any]) -> str:
    """What is not what it must be, as `spec.containers must be a list`; "" if all is well."""
    pod = is_pod(manifest)
    for path, kind in (*_OBJECT, *(_POD if pod else ())):
        for place, value in _values(manifest, path):
            if not isinstance(value, kind):
                return f"{place} must be {_WORDS[kind]}"
    if pod and not manifest.get("spec"):
        return "spec is missing"
    for field in CONTAINER_FIELDS if pod else ():
        for place, container in _values(manifest, ("spec", field, _EVERY)):
            if not container.get("name"):
                return f"{place} has no name"
    return ""


def _values(value: Any, path: tuple[str, ...], place: str = "") -> Iterator[tuple[str, Any]]:
    """(place, value) of all that stands at `path`; what is left out or null is passed over."""
    if not path:
        yield place, value
        return
    step, *rest = path
    if step == _EVERY:
        for index, item in enumerate(value):
            yield from _values(item, tuple(rest), f"{place}[{index}]")
    elif value.get(step) is not None:
        yield from _values(value[step], tuple(rest), f"{place}.{step}" if place else step)
