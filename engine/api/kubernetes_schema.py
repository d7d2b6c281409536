"""Kubernetes' types as JSON Schemas: two files that `make kubernetes-types` makes from its OpenAPI.

The specs' own schemas refer to them, templates are checked by them, and a pod patch merges by them.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.api.versions import API_VERSION, SCHEMAS, parse_schema, read_schema, stem_of
from engine.errors import Diagnostic, InvalidInputError, SourceLocation

TYPES = "kubernetes/types.schema.json"
"""The types as the API server takes them."""
PATCH = "kubernetes/patch.schema.json"
"""The types of a pod in a strategic merge patch: nothing is required, and directives fit."""
CORE = "io.k8s.api.core.v1"

Type = Mapping[str, Any]
"""The JSON Schema of one value."""

_LEADS = re.compile(r'"\$ref": "#/definitions/([^/"]+)/([^/"]+)')
"""To a definition: the stem of its file, and its name."""
_DRAFT = "http://json-schema.org/draft-07/schema#"
_HINT = "the repository's kubernetes_types.py makes it of: kubectl get --raw /openapi/v2"


class KubernetesSchema:
    """The types of one release, which are read when they are first needed: most specs need none."""

    def __init__(self, read: Callable[[str], Mapping[str, Any]]) -> None:
        self._read = read
        """Reads the file `TYPES` or `PATCH`."""

    @cached_property
    def definitions(self) -> Mapping[str, Any]:
        """All that a `$ref` leads to, by the stem of its file; and the engine's kinds by name."""
        found = {stem_of(name): self._read(name)["definitions"] for name in (TYPES, PATCH)}
        for (_, kind), name in SCHEMAS.items():
            schema = read_schema(name)
            found[stem_of(name)] = schema.get("definitions", {})
            # A schema that names its draft would be judged by that, without our keywords.
            found[kind] = {k: schema[k] for k in schema if k not in ("$schema", "definitions")}
        return found

    def name_of(self, api_version: str, kind: str) -> str:
        """What the definition of a kind's objects is called. Errors: KeyError."""
        return self._names[api_version, kind]

    @cached_property
    def _names(self) -> Mapping[tuple[str, str], str]:
        return {
            ("/".join(filter(None, (one["group"], one["version"]))), one["kind"]): name
            for name, definition in self.definitions["types"].items()
            for one in definition.get("x-kubernetes-group-version-kind", ())
        }

    def kind(self, api_version: str, kind: str) -> Type:
        """The type of a kind's objects. Errors: KeyError."""
        found: Type = self.definitions["types"][self.name_of(api_version, kind)]
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
                target: Type = self.definitions["types"][name]
                return target
        return found


SHIPPED = KubernetesSchema(read_schema)
"""The types of the release that the engine is tested with."""


def bundled_schema(kind: str) -> str:
    """The schema of `kind` with everything that it refers to, for an editor that has it alone."""
    named = {"$schema": _DRAFT, "$id": f"https://jobs.engine/{SCHEMAS[API_VERSION, kind]}"}
    whole: dict[str, Any] = {**named, **SHIPPED.definitions[kind], "definitions": {}}
    ahead: list[Any] = [whole]
    while ahead:
        for stem, name in _LEADS.findall(json.dumps(ahead.pop())):
            found = whole["definitions"].setdefault(stem, {})
            if name not in found:
                found[name] = SHIPPED.definitions[stem][name]
                ahead.append(found[name])
    made = json.loads(json.dumps(whole), object_hook=_for_editors)
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _for_editors(node: dict[str, Any]) -> dict[str, Any]:
    """The YAML language server completes nothing in an empty mapping that may have one field, and
    its hover leaves defaults out.
    """
    if node.get("maxProperties") == 1 and "properties" in node:
        del node["maxProperties"]
        node["oneOf"] = [{"required": [name]} for name in node["properties"]]
    if isinstance(words := node.get("description"), str) and "default" in node:
        node["description"] = f"{words} Default: {json.dumps(node['default'])}."
    return node


def read_kubernetes_schema(path: Path) -> KubernetesSchema:
    """The types in a file that `deploy/kubernetes_types.py` made of a cluster's OpenAPI.

    Errors: InvalidInputError when it can't be read, or is something else.
    """
    cause = "this file has no types of Kubernetes"
    try:
        given = json.loads(path.read_bytes())
        files = {name: parse_schema(json.dumps(given[name]), name) for name in (TYPES, PATCH)}
        if all(f"{CORE}.Pod" in one["definitions"] for one in files.values()):
            return KubernetesSchema(files.__getitem__)
    except OSError as error:
        cause = f"can't be read: {error.strerror}"
    except (ValueError, RecursionError, TypeError, LookupError):
        pass  # other files are no JSON, or hold something else
    raise InvalidInputError((Diagnostic(SourceLocation(str(path)), cause, _HINT),))
