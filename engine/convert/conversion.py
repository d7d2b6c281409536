"""A JobSpec made of another tool's job, and what could not be carried over."""

import re
from dataclasses import dataclass, field
from typing import Any

from engine.api.versions import API_VERSION, JOB_SPEC
from engine.api.yaml_reader import Document, Path
from engine.refs import MAIN_CONTAINER

LONGEST_NAME = 48


@dataclass(frozen=True, slots=True)
class Conversion:
    """One JobSpec in the making; its parts are filled while the other tool's job is read."""

    document: Document
    """What is read."""
    original: str
    """The job's name there."""
    metadata: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    remarks: list[tuple[int, str]] = field(default_factory=list)
    """What the reader has to do by hand, each behind the line that asked for it."""

    def remark(self, path: Path, words: str) -> None:
        """Say that the value at `path` is not carried over as it is, and what to do instead."""
        line = self.document.locate(path, key=True).line
        self.remarks.append((line, f"{path[-1]}: {words}"))

    def __post_init__(self) -> None:
        """Name the job as the other tool does, if Kubernetes takes that name."""
        self.metadata["name"] = job_name(self.original)

    def patch(self, **fields: Any) -> None:
        """Keep fields of the pod that a JobSpec has no name for, in its pod patch."""
        self.spec.setdefault("podPatch", {}).setdefault("spec", {}).update(fields)

    def patch_container(self, kind: str, name: str, fields: dict[str, Any]) -> None:
        """The same of a container of the pod; `kind` is the list of the pod that has it."""
        if fields:
            pod = self.spec.setdefault("podPatch", {}).setdefault("spec", {})
            pod.setdefault(kind, []).append({"name": name, **fields})

    @property
    def manifest(self) -> dict[str, Any]:
        """The JobSpec."""
        spec = dict(self.spec)
        patch = spec.pop("podPatch", None)
        whole = spec | ({"podPatch": patch} if patch else {})
        return {
            "apiVersion": API_VERSION,
            "kind": JOB_SPEC,
            "metadata": self.metadata,
            "spec": whole,
        }


def job_name(text: str) -> str:
    """The DNS-1123 label that is nearest to `text`, and at most 48 characters long."""
    label = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
    return label[:LONGEST_NAME].strip("-") or MAIN_CONTAINER
