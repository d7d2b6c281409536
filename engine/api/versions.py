"""The engine's kinds by version, each with its JSON Schema."""

import json
from collections.abc import Mapping
from functools import cache, reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from engine.files import resource_dir

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

API_VERSION = "jobs.engine/v1alpha1"
JOB_SPEC = "JobSpec"
JOB_DEFAULTS = "JobDefaults"
ENGINE_CONFIG = "EngineConfig"

SCHEMAS: Mapping[tuple[str, str], str] = {
    (API_VERSION, JOB_SPEC): "job.v1alpha1.schema.json",
    (API_VERSION, JOB_DEFAULTS): "jobdefaults.v1alpha1.schema.json",
    (API_VERSION, ENGINE_CONFIG): "engineconfig.v1alpha1.schema.json",
}
"""Files in `schemas/`, by `apiVersion` and `kind`. A version may exist for some kinds alone."""
CUSTOM_RESOURCES = "kubernetes/crds.json"
"""CustomResourceDefinitions of JobSpec and JobDefaults, and the policies beside them, which `make
manifests` makes of the others.
"""


@cache
def read_schema(name: str) -> Any:
    """What a file in `schemas/` holds."""
    return json.loads((resource_dir("schemas") / name).read_bytes())


def bundled_schema(api_version: str, kind: str) -> str:
    """The schema of `kind` with everything that it refers to, for an editor that has it alone."""
    start = SCHEMAS[api_version, kind]
    definitions: dict[str, Any] = {}

    def bundle(node: Any, file: str) -> Any:
        if isinstance(node, list):
            return [bundle(one, file) for one in node]
        if not isinstance(node, dict):
            return node
        made = {key: bundle(below, file) for key, below in node.items() if key != "$ref"}
        if made.get("maxProperties") == 1 and "properties" in made:  # editors complete none then
            del made["maxProperties"]
            made["oneOf"] = [{"required": [name]} for name in made["properties"]]
        if isinstance(words := made.get("description"), str) and "default" in made:
            made["description"] = f"{words} Default: {json.dumps(made['default'])}."  # for hover
        if "$ref" in node:
            name, _, pointer = node["$ref"].partition("#/")
            made["$ref"] = f"#/definitions/{take(name or file, pointer)}"
        return made

    def take(file: str, pointer: str) -> str:
        steps = pointer.split("/")
        # Files may have definitions of the same name.
        prefix = "" if file == start else f"{file.rpartition('/')[2].partition('.')[0]}."
        name = prefix + ".".join(step for step in steps if step != "definitions")
        if name not in definitions:
            definitions[name] = {}  # a type may be within itself
            definitions[name] = bundle(reduce(getitem, steps, read_schema(file)), file)
        return name

    whole = {key: below for key, below in read_schema(start).items() if key != "definitions"}
    made = bundle(whole, start)
    named = {"$schema": made.pop("$schema"), "$id": f"https://jobs.engine/{start}"}
    whole = {**named, **made, "definitions": definitions}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


@cache
def record_validator() -> "Draft202012Validator":
    """Of a run record, which is a stranger's text."""
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - not every command reads one

    text = (resource_dir("schemas") / "record.schema.json").read_bytes()
    return Draft202012Validator(json.loads(text))
