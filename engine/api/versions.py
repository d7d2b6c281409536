"""The engine's kinds by version, each with its JSON Schema."""

import json
import re
from collections.abc import Mapping
from functools import cache
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
_REFERENCE = re.compile(r'"\$ref":\s*"([^"#]*)#/definitions/')


@cache
def read_schema(name: str) -> Any:
    """What a file in `schemas/` holds."""
    return parse_schema((resource_dir("schemas") / name).read_text(encoding="utf-8"), name)


def parse_schema(text: str, name: str) -> Any:
    """What the text of the file `name` holds.

    Each `$ref` leads to `#/definitions/STEM/NAME`, where one document can have those of all files.
    """

    def absolute(found: re.Match[str]) -> str:
        return f'"$ref": "#/definitions/{stem_of(found[1] or name)}/'

    return json.loads(_REFERENCE.sub(absolute, text))


def stem_of(name: str) -> str:
    """The first word of a file's name: `types` of `kubernetes/types.schema.json`."""
    return name.rpartition("/")[2].partition(".")[0]


@cache
def record_validator() -> "Draft202012Validator":
    """Of a run record, which is a stranger's text."""
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - not every command reads one

    return Draft202012Validator(read_schema("record.schema.json"))
