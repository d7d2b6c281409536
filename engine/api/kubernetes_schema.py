"""Kubernetes' types as JSON Schemas: two files that `make kubernetes-types` makes from its OpenAPI.

The specs' own schemas refer to them, templates are checked by them, and a pod patch merges by them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.api.versions import read_schema
from engine.errors import Diagnostic, InvalidInputError, SourceLocation

TYPES = "kubernetes/types.schema.json"
"""The types as the API server takes them."""
PATCH = "kubernetes/patch.schema.json"
"""The types of a pod in a strategic merge patch: nothing is required, and directives fit."""
CORE = "io.k8s.api.core.v1"
RENDERED = (f"{CORE}.Pod", f"{CORE}.Secret", f"{CORE}.ConfigMap")
_IN_SPECS = (f"{CORE}.PodSecurityContext", f"{CORE}.SecurityContext", f"{CORE}.Toleration")
"""The types that the schemas of the specs refer to."""

Type = Mapping[str, Any]
"""The JSON Schema of one value."""

_HINT = "make it with: kubectl get --raw /openapi/v2"
_KEPT = ("type", "format", "enum", "required", "$ref")
_TYPE_NAMES = (None, "object", "array", "string", "integer", "number", "boolean")
_FORMATS = ("int32", "int64", "byte", "date-time")
_INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
_SPECIAL: Mapping[str, Type] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "type": ["number", "string", "null"],
        "pattern": (
            r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
            r"([KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)\s*$"
        ),
        "patternErrorMessage": (
            "a quantity is a number with an optional unit: 100m, 0.5, 256Mi, 2G"
        ),
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string", "null"]},
}
"""OpenAPI calls them strings."""
_DIRECTIVES: Mapping[str, Type] = {
    r"^\$patch$": {"enum": ["delete", "merge", "replace"]},
    r"^\$retainKeys$": {"type": "array", "items": {"type": "string"}},
}
_ON_LISTS = r"^\$(setElementOrder|deleteFromPrimitiveList)/({})$"
_IN_POD: Mapping[str, str] = {
    "securityContext": "pod.spec.containers.securityContext",
    "podSecurityContext": "pod.spec.securityContext",
    "tolerations": "pod.spec.tolerations",
    "emptyDir": "pod.spec.volumes.emptyDir",
    "podPatch": "pod",
}
"""Fields of a spec that Kubernetes defines, as `kubectl explain` names them."""


class KubernetesSchema:
    """The types of one release, which are read when they are first needed: most specs need none."""

    def __init__(self, read: Callable[[], Mapping[str, Type]]) -> None:
        self._read = read

    @cached_property
    def files(self) -> Mapping[str, Type]:
        """`TYPES` and `PATCH`, each a document."""
        return self._read()

    def name_of(self, api_version: str, kind: str) -> str:
        """What the definition of a kind's objects is called. Errors: KeyError."""
        return self._names[api_version, kind]

    @cached_property
    def _names(self) -> Mapping[tuple[str, str], str]:
        return {
            ("/".join(filter(None, (one["group"], one["version"]))), one["kind"]): name
            for name, definition in self.files[TYPES]["definitions"].items()
            for one in definition.get("x-kubernetes-group-version-kind", ())
        }

    def kind(self, api_version: str, kind: str) -> Type:
        """The type of a kind's objects. Errors: KeyError."""
        found: Type = self.files[TYPES]["definitions"][self.name_of(api_version, kind)]
        return found

    def below(self, holder: Type, key: str) -> Type:
        """The type of the value at `key` of a mapping; {}, which is anything, if it is unknown."""
        values = holder.get("additionalProperties")
        found = holder.get("properties", {}).get(key, values if isinstance(values, dict) else {})
        return self._resolved(found)

    def item(self, array: Type) -> Type:
        """The type of the items of a list."""
        return self._resolved(array.get("items", {}))

    def _resolved(self, found: Type) -> Type:
        for one in (found, *found.get("allOf", ())):
            if "$ref" in one:
                name = one["$ref"].rpartition("/")[2]
                target: Type = self.files[TYPES]["definitions"][name]
                return target
        return found


SHIPPED = KubernetesSchema(lambda: {name: read_schema(name) for name in (TYPES, PATCH)})
"""The types of the release that the engine is tested with."""


def read_kubernetes_schema(path: Path) -> KubernetesSchema:
    """The types in an OpenAPI v2 document, as `kubectl get --raw /openapi/v2` prints it.

    Errors: InvalidInputError when it can't be read, or is something else.
    """
    try:
        types = from_openapi(json.loads(path.read_bytes()))
        files = {TYPES: types, PATCH: for_patches(types)}
    except OSError as error:
        cause = f"can't be read: {error.strerror}"
    except TypeError as error:
        cause = str(error)
    except (ValueError, RecursionError) as error:
        cause = f"this is no JSON: {error}"
    else:
        return KubernetesSchema(lambda: files)
    raise InvalidInputError((Diagnostic(SourceLocation(str(path)), cause, _HINT),))


def kubectl_name(path: Sequence[str | int], manifest: str = "") -> str:
    """What `kubectl explain` calls the field at `path` of a document; "" for the engine's own.

    `manifest` is the kind of a document that is an object of Kubernetes.
    """
    steps = [step for step in path if isinstance(step, str)]
    if manifest:
        return ".".join((manifest.lower(), *steps))
    start = 2 if steps[1:2] in (["services"], ["initContainers"], ["volumes"]) else 1
    root = _IN_POD.get("".join(steps[start : start + 1]))
    return ".".join((root, *steps[start + 1 :])) if root else ""


def from_openapi(
    document: Any, kinds: Iterable[str] = RENDERED, explained: Iterable[str] = ()
) -> dict[str, Any]:
    """One JSON Schema with the types of `kinds`, and of all that they are made of.

    It knows no other fields than OpenAPI does. Null is as good as a field that is left out. The
    types that `explained` kinds are made of keep the first sentence of their descriptions.
    Errors: TypeError.
    """
    try:
        definitions = document["definitions"]
        with_words = _closure(definitions, explained)
        names = sorted(_closure(definitions, (*kinds, *RENDERED, *_IN_SPECS)))
        made = {one: _definition(definitions, one, words=one in with_words) for one in names}
    except (AttributeError, TypeError, KeyError) as error:
        words = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        message = f"this is no OpenAPI v2 document of Kubernetes: {words}"
        raise TypeError(message) from None
    return {"definitions": made}


def for_patches(types: Mapping[str, Any]) -> dict[str, Any]:
    """The types of a pod from `from_openapi`, as a strategic merge patch has them."""
    definitions = types["definitions"]
    names = sorted(_closure(definitions, RENDERED[:1]))
    return {"definitions": {name: _patched(definitions[name]) for name in names}}


def _closure(definitions: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    ahead = [*names]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead.extend(_references(definitions[name]))
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference.rpartition("/")[2]
        for item in value.values():
            yield from _references(item)


def _definition(definitions: Mapping[str, Any], name: str, *, words: bool) -> dict[str, Any]:
    if name in _SPECIAL:
        return dict(_SPECIAL[name])
    return _nullable({"type": "object", **_strict(definitions, definitions[name], words=words)})


def _strict(definitions: Mapping[str, Any], node: Type, *, words: bool) -> dict[str, Any]:
    if node.get("type") not in _TYPE_NAMES:
        raise TypeError(f"there is no type {node['type']}")
    made = {key: node[key] for key in node if key in _KEPT or key.startswith("x-kubernetes-")}
    if words and "description" in node:
        made = {"description": re.split(r"(?<=\.)\s|\n", node["description"])[0], **made}
    if made.get("format") not in _FORMATS:
        made.pop("format", None)
    if made.get("format") == "int32":
        made |= _INT32
    if "properties" in node:
        made["properties"] = {
            name: _nullable(_strict(definitions, below, words=words))
            for name, below in node["properties"].items()
        }
        made["additionalProperties"] = False
    elif isinstance(node.get("additionalProperties"), dict):
        values = _strict(definitions, node["additionalProperties"], words=words)
        made["additionalProperties"] = _nullable(values)
    if "items" in node:
        item = _strict(definitions, node["items"], words=words)
        target = definitions.get(item.get("$ref", "").rpartition("/")[2], {})
        # A definition fits null, which an item of a list must not be.
        made["items"] = {"type": "object", "allOf": [item]} if "properties" in target else item
    return made


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    if "type" not in node:
        return node
    choices = {"enum": [*node["enum"], None]} if "enum" in node else {}
    return {**node, **choices, "type": [node["type"], "null"]}


def _patched(node: Type) -> dict[str, Any]:
    made = {key: node[key] for key in node if key != "required"}
    properties = node.get("properties", {})
    if properties or isinstance(node.get("additionalProperties"), dict):
        lists = [name for name, below in properties.items() if "items" in below]
        on_lists = {_ON_LISTS.format("|".join(lists)): {"type": "array"}} if lists else {}
        made["patternProperties"] = {**_DIRECTIVES, **on_lists}
    if properties:
        made["properties"] = {name: _patched(below) for name, below in properties.items()}
    return made
