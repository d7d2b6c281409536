"""A JobSpec made of another tool's job, and what could not be carried over."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from engine.api.versions import API_VERSION, JOB_SPEC, SCHEMAS, read_schema
from engine.api.yaml_reader import Document, Path
from engine.refs import MAIN_CONTAINER

LONGEST_NAME = 48
_SPEC = read_schema(SCHEMAS[API_VERSION, JOB_SPEC])["definitions"]["spec"]
_OTHERS: Mapping[str, str] = _SPEC["x-other-names"]
"""What to do here in place of fields that other tools' jobs have."""


class Conversion(Struct, frozen=True):
    """One JobSpec in the making; its parts are filled while the other tool's job is read."""

    document: Document
    """What is read."""
    name: str
    """The job's, as `job_name` gives it."""
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    patch: dict[str, Any] = {}
    """Fields of the pod that a JobSpec has no name for."""
    remarks: list[tuple[int, str]] = []
    """What the reader has to do by hand, each behind the line that asked for it."""

    @property
    def manifest(self) -> dict[str, Any]:
        """The JobSpec."""
        return {
            "apiVersion": API_VERSION,
            "kind": JOB_SPEC,
            "metadata": {"name": self.name, **self.metadata},
            "spec": self.spec | ({"podPatch": {"spec": self.patch}} if self.patch else {}),
        }

    def remark(self, path: Path, words: str = "") -> None:
        """Say that the value at `path` is not carried over as it is, and what to do instead.

        Without `words` these are the schema's own for a field of another tool.
        """
        words = words or _OTHERS.get(str(path[-1]), "no field of a JobSpec is the same")
        line = self.document.locate(path, key=True).line
        self.remarks.append((line, f"{path[-1]}: {words}"))


def renamed(given: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The fields of `names` under their names here; they are taken out of `given`."""
    return {ours: given.pop(theirs) for theirs, ours in names.items() if theirs in given}


def job_name(text: str) -> str:
    """The DNS-1123 label that is nearest to `text`, and at most 48 characters long."""
    label = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
    return label[:LONGEST_NAME].strip("-") or MAIN_CONTAINER
