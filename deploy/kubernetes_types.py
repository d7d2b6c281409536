"""Make JSON Schemas of Kubernetes' types from its OpenAPI. It needs nothing but Python.

`kubernetes_types.py OPENAPI` prints the file for `--kubernetes-schema`; `OPENAPI` is a file that
has what `kubectl get --raw /openapi/v2` prints. `kubernetes_types.py SWAGGER RELEASE` makes
`schemas/kubernetes` anew; `make kubernetes-types` finds its arguments: `swagger.json` of the Go
module `k8s.io/kubernetes`, and the release.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

TYPES, PATCH = "kubernetes/types.schema.json", "kubernetes/patch.schema.json"
CORE = "io.k8s.api.core.v1"
SCHEMAS = Path(__file__).parents[1] / "schemas"
_RENDERED = (f"{CORE}.Pod", f"{CORE}.Secret", f"{CORE}.ConfigMap")
_IN_SPECS = (f"{CORE}.PodSecurityContext", f"{CORE}.SecurityContext", f"{CORE}.Toleration")
"""The types that the schemas of the specs refer to."""
SERVED = (
    *(
        f"{CORE}.{kind}"
        for kind in ("Binding", "Event", "Namespace", "Node", "ResourceQuota", "ServiceAccount")
    ),
    "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    "io.k8s.api.coordination.v1.Lease",
    "io.k8s.api.events.v1.Event",
    "io.k8s.api.policy.v1.Eviction",
)
"""What the sandbox serves besides the kinds that the engine renders."""
_EXPLAINED = (f"{CORE}.PodSpec", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
"""A status is never patched: its descriptions would be a tenth of the files."""
_KEPT = ("type", "format", "enum", "required", "$ref")
_TYPE_NAMES = (None, "object", "array", "string", "integer", "number", "boolean")
_FORMATS = ("int32", "int64", "byte", "date-time")
_INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
_SPECIAL: Mapping[str, Any] = {
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
_DIRECTIVES: Mapping[str, Any] = {
    r"^\$patch$": {"enum": ["delete", "merge", "replace"]},
    r"^\$retainKeys$": {"type": "array", "items": {"type": "string"}},
}
_ON_LISTS = r"^\$(setElementOrder|deleteFromPrimitiveList)/({})$"


def generate(document: Any, release: str) -> dict[str, str]:
    """The text of each file by its path below `schemas`. Errors: TypeError."""
    types = from_openapi(document, SERVED, _EXPLAINED)
    return {TYPES: as_text(types, release), PATCH: as_text(for_patches(types), release)}


def as_text(schema: Mapping[str, Any], release: str) -> str:
    """One definition a line, so that a new release can be compared with the one before."""
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": f"Types of Kubernetes {release}, Apache License 2.0 (make kubernetes-types).",
    }
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(node, ensure_ascii=False, separators=(',', ':'))}"
        for name, node in schema["definitions"].items()
    )
    return f'{json.dumps(head, indent=0)[:-2]},\n"definitions": {{\n{lines}\n}}}}\n'


def from_openapi(
    document: Any, kinds: Iterable[str] = _RENDERED, explained: Iterable[str] = ()
) -> dict[str, Any]:
    """One JSON Schema with the types of `kinds`, and of all that they are made of.

    It knows no other fields than OpenAPI does. Null is as good as a field that is left out. The
    types that `explained` kinds are made of keep the first sentence of their descriptions.
    Errors: TypeError.
    """
    try:
        definitions = document["definitions"]
        with_words = _closure(definitions, explained)
        names = sorted(_closure(definitions, (*kinds, *_RENDERED, *_IN_SPECS)))
        made = {one: _definition(definitions, one, words=one in with_words) for one in names}
    except (AttributeError, TypeError, KeyError) as error:
        words = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        message = f"this is no OpenAPI v2 document of Kubernetes: {words}"
        raise TypeError(message) from None
    return {"definitions": made}


def for_patches(types: Mapping[str, Any]) -> dict[str, Any]:
    """The types of a pod from `from_openapi`, as a strategic merge patch has them."""
    definitions = types["definitions"]
    names = sorted(_closure(definitions, _RENDERED[:1]))
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


def _strict(
    definitions: Mapping[str, Any], node: Mapping[str, Any], *, words: bool
) -> dict[str, Any]:
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


def _patched(node: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: node[key] for key in node if key != "required"}
    properties = node.get("properties", {})
    if properties or isinstance(node.get("additionalProperties"), dict):
        lists = [name for name, below in properties.items() if "items" in below]
        on_lists = {_ON_LISTS.format("|".join(lists)): {"type": "array"}} if lists else {}
        made["patternProperties"] = {**_DIRECTIVES, **on_lists}
    if properties:
        made["properties"] = {name: _patched(below) for name, below in properties.items()}
    return made


def main(path: str, release: str = "") -> None:
    """As the command line says. Errors: SystemExit for a file that is no OpenAPI."""
    try:
        document = json.loads(Path(path).read_bytes())
        if release:
            for name, text in generate(document, release).items():
                (SCHEMAS / name).write_text(text, encoding="utf-8")
        else:
            types = from_openapi(document)
            json.dump({TYPES: types, PATCH: for_patches(types)}, sys.stdout)
    except (ValueError, TypeError) as error:
        sys.exit(f"{path}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
