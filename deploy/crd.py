"""The CustomResourceDefinitions of the kinds that a cluster can hold, made from their schemas.

A structural schema knows less than JSON Schema. What it can't say, a policy says
(`deploy.admission_policy`), and the engine says all of it again.
"""

import json
from collections.abc import Mapping
from typing import Any

from engine.api.versions import API_VERSION, JOB_DEFAULTS, JOB_SPEC, SCHEMAS
from engine.files import resource_dir

GROUP, _, VERSION = API_VERSION.partition("/")
JOB_SPECS, JOB_DEFAULTS_OBJECTS = "jobspecs", "jobdefaults"
OPEN: Mapping[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = "x-kubernetes-int-or-string"
RULES = "x-kubernetes-validations"

_KEPT = (
    *("description", "type", "enum", "format", "minimum", "maximum", "minLength"),
    *("maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_ROOT = ("apiVersion", "kind", "metadata")
_SPEC_RULES = (
    {
        "rule": "has(self.managedBy) == has(oldSelf.managedBy) && "
        "(!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",
        "message": "managedBy is immutable",
    },
    {
        "rule": "!has(self.matrix)",
        "message": "a matrix makes several jobs, and an object is one: keep it in a file",
    },
)
_OF_SEVERAL = (
    (
        {"fromEnv", "fromFile"},
        {
            "rule": "!has(self.fromEnv) && !has(self.fromFile)",
            "message": "fromEnv and fromFile read the engine's own machine, not allowed in an "
            "object: use fromSecret, or keep the job in a file",
        },
    ),
    (
        {"script", "command"},
        {
            "rule": "!has(self.script) || !has(self.command)",
            "message": "has both script and command: a script is run by sh -e; keep one of them",
        },
    ),
    (
        {"fromSecret", "registry", "username", "password"},
        {
            "rule": "has(self.fromSecret) ? !has(self.registry) && !has(self.username) && "
            "!has(self.password) : has(self.registry) && has(self.username) && has(self.password)",
            "message": "either registry, username and password, or fromSecret alone: the Secret "
            "has registry, username and password",
        },
    ),
)
"""Rules of every mapping that has all of these fields."""
_CONDITION = {name: {"type": "string"} for name in ("type", "status", "reason", "message")} | {
    "lastTransitionTime": {"type": "string", "format": "date-time"},
    "observedGeneration": {"type": "integer", "format": "int64"},
}
_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time"}
_STATUS = {
    "description": "What became of the job: its run record, written by the engine alone.",
    "type": "object",
    "default": {"observedGeneration": -1},
    **OPEN,
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "state": {"description": "Queued, Running, Succeeded, …", **_TEXT},
        "reason": _TEXT,
        "message": _TEXT,
        "lastWords": {"description": "The end of the log of the container that failed.", **_TEXT},
        "runHash": _TEXT,
        "startedAt": _TIME,
        "finishedAt": _TIME,
        "took": {"description": "How long the run took, such as 3m12s.", **_TEXT},
        "attempts": {
            "description": "The attempts of this run, the last one at the end.",
            "type": "array",
            "items": {
                "type": "object",
                **OPEN,
                "properties": {"number": {"type": "integer"}, "pod": _TEXT},
            },
        },
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": _CONDITION,
            },
        },
        "record": {
            "description": "The run record, as the engine encodes it.",
            "type": "object",
            **OPEN,
        },
    },
}
_COLUMNS = (
    ("State", "string", ".status.state", 0),
    ("Reason", "string", ".status.reason", 0),
    ("Attempts", "integer", ".status.attempts[-1:].number", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Pod", "string", ".status.attempts[-1:].pod", 1),
    ("Took", "string", ".status.took", 1),
)


def custom_resource_definitions() -> tuple[dict[str, Any], ...]:
    """Of JobSpec and of JobDefaults. Each schema is structural and below 64 KiB as JSON."""
    more = {
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".status.state"}],
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path} | ({"priority": 1} if wide else {})
            for name, kind, path, wide in _COLUMNS
        ],
    }
    return (
        _definition(JOB_SPEC, JOB_SPECS, "js", more),
        _definition(JOB_DEFAULTS, JOB_DEFAULTS_OBJECTS, "jd", {}),
    )


def _definition(kind: str, plural: str, short: str, more: Mapping[str, Any]) -> dict[str, Any]:
    schema = resolved_schema(kind)
    root = structural(schema)
    name = schema["properties"]["metadata"]["properties"]["name"]
    root["properties"] |= {field: {"type": "string"} for field in _ROOT[:2]}
    # Of metadata a structural schema may restrict nothing but the name.
    bounds = {key: name[key] for key in ("type", "maxLength", "pattern") if key in name}
    root["properties"]["metadata"] = {"type": "object", "properties": {"name": bounds}}
    root["required"] = [field for field in schema["required"] if field not in _ROOT]
    spec = root["properties"]["spec"]
    spec[RULES] = [*_SPEC_RULES, *spec.get(RULES, ())]
    if "subresources" in more:
        root["properties"]["status"] = _STATUS
    version = {"name": VERSION, "served": True, "storage": True, **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                # Not of `all`: `kubectl delete all` would end jobs.
                "categories": ["engine"],
            },
            "versions": [{**version, "schema": {"openAPIV3Schema": root}}],
        },
    }


def resolved_schema(kind: str) -> dict[str, Any]:
    """The schema of a kind with each `$ref` to its own files replaced by what it refers to.

    Fields that Kubernetes defines are open mappings in it.
    """
    folder = resource_dir("schemas")
    files: dict[str, Any] = {}

    def resolve(node: Any, file: str) -> Any:
        if isinstance(node, list):
            return [resolve(one, file) for one in node]
        if not isinstance(node, dict):
            return node
        if "allOf" in node:
            kept = {key: node[key] for key in ("description", "type") if key in node}
            return {"type": "object", **kept, **OPEN}
        if "$ref" not in node:
            return {key: resolve(below, file) for key, below in node.items()}
        name, _, pointer = node["$ref"].partition("#/")
        target = read(name or file)
        for step in pointer.split("/"):
            target = target[step]
        own = {key: below for key, below in node.items() if key != "$ref"}
        return {**resolve(target, name or file), **resolve(own, file)}

    def read(name: str) -> Any:
        if name not in files:
            files[name] = json.loads((folder / name).read_bytes())
        return files[name]

    name = SCHEMAS[API_VERSION, kind]
    whole = {key: below for key, below in read(name).items() if key != "definitions"}
    made: dict[str, Any] = resolve(whole, name)
    return made


def structural(node: Mapping[str, Any]) -> dict[str, Any]:
    """As much of a resolved schema as a structural one can say.

    A mapping with fields of its own keeps unknown ones: a policy refuses them, where the API
    server would drop them without a word.
    """
    kind = node.get("type")
    made = {key: node[key] for key in _KEPT if key in node} | _description(node)
    if isinstance(kind, list) and set(kind) != {"string", "integer"}:
        return {**_description(node), **OPEN}
    if "const" in node:
        made |= {"type": "string", "enum": [node["const"]]}
    rules = []
    if isinstance(kind, list):
        del made["type"]
        made |= {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    # The API server reckons with the longest text, and refuses a rule that could take too long.
    if "pattern" in node and "maxLength" not in node and not isinstance(kind, list):
        made["pattern"] = node["pattern"]
    elif "pattern" in node:
        words = node.get("patternErrorMessage", "")
        rules += _pattern_rule(node["pattern"], words, isinstance(kind, list))
    if "properties" in node:
        made |= OPEN
        made["properties"] = {name: structural(one) for name, one in node["properties"].items()}
        rules += [rule for fields, rule in _OF_SEVERAL if fields <= node["properties"].keys()]
    elif isinstance(node.get("additionalProperties"), Mapping):
        made["additionalProperties"] = structural(node["additionalProperties"])
    elif OPEN.keys() <= node.keys():
        made |= OPEN
    if "items" in node:
        made["items"] = structural(node["items"])
    if "uniqueItems" in node and node["items"].get("type") == "string":
        made["x-kubernetes-list-type"] = "set"
    if "required" in node:
        made["required"] = node["required"]
    if rules:
        made[RULES] = rules
    return made


def _description(node: Mapping[str, Any]) -> dict[str, str]:
    """With what `engine explain` says in lines of their own, and kubectl explain not at all."""
    if "description" not in node:
        return {}
    words = [node["description"]]
    if isinstance(node.get("type"), list) and "enum" in node.get("items", {}):
        words.append(f"One of: {', '.join(node['items']['enum'])}.")
    if "default" in node:
        words.append(f"Default: {json.dumps(node['default'])}.")
    return {"description": " ".join(words)}


def _pattern_rule(pattern: str, words: str, or_int: bool) -> list[dict[str, str]]:
    text = json.dumps(pattern)
    rule = f"type(self) == int || self.matches({text})" if or_int else f"self.matches({text})"
    return [{"rule": rule, "message": words}]
