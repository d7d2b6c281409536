"""The engine's kinds by version: each has a JSON Schema, and a conversion to the engine's model.

The model, the templates and every check know the fields of one version, `API_VERSION`; every
other version is converted to it, once its own schema has passed it.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.api.yaml_reader import Document, Path, written_path
from engine.package_data import resource_dir

API_VERSION = "jobs.engine/v1alpha1"
JOB_SPEC = "JobSpec"
JOB_DEFAULTS = "JobDefaults"
ENGINE_CONFIG = "EngineConfig"


class Conversion:
    """One document on its way to the fields of `API_VERSION`."""

    data: dict[str, Any]
    """Plain data, which the conversion may change as it likes."""
    moves: dict[Path, Path]
    """New path -> path as written, so that messages name the user's own words and places."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = copy.deepcopy(dict(data))
        self.moves = {}

    def move(self, old: Path, new: Path) -> None:
        """Move the value at `old` to `new`, where a mapping has to be; nothing if there is none."""
        holder = _value_at(self.data, old[:-1])
        if isinstance(holder, dict) and old[-1] in holder:
            _value_at(self.data, new[:-1])[new[-1]] = holder.pop(old[-1])
            self.moves[new] = written_path(self.moves, old)


@dataclass(frozen=True, slots=True)
class Version:
    """One kind in one version."""

    schema: str
    """The JSON Schema that its documents are checked against: a file in `schemas/`."""
    convert: Callable[[Conversion], None] | None = None
    """Turns a valid document into one of `API_VERSION`; None where there is nothing to turn."""


VERSIONS: Mapping[tuple[str, str], Version] = {
    (API_VERSION, JOB_SPEC): Version("job.v1alpha1.schema.json"),
    (API_VERSION, JOB_DEFAULTS): Version("jobdefaults.v1alpha1.schema.json"),
    (API_VERSION, ENGINE_CONFIG): Version("engineconfig.v1alpha1.schema.json"),
}
"""By `apiVersion` and `kind`. A version may exist for some of the kinds alone."""


def schema_text(api_version: str, kind: str) -> str:
    """The schema file of `kind` in `api_version`; KeyError when there is none."""
    name = VERSIONS[api_version, kind].schema
    return (resource_dir("schemas") / name).read_text(encoding="utf-8")


def to_model(document: Document) -> Document:
    """A document that its schema has passed, with the fields of `API_VERSION`.

    It still knows what the user wrote, and where.
    """
    convert = VERSIONS[document.data["apiVersion"], document.data["kind"]].convert
    if convert is None:
        return document
    conversion = Conversion(document.data)
    convert(conversion)
    data = {**conversion.data, "apiVersion": API_VERSION}
    return replace(document, data=data, moves=conversion.moves)


def _value_at(data: Any, path: Path) -> Any:
    """The value at `path`; None where there is none."""
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data
