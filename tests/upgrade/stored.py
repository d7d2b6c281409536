"""What a release left behind, and how to bring it back into a cluster."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.upgrade.stage import Stage

Object = dict[str, Any]
JobName = tuple[str, str]
_OTHER_NODE = "node-of-before"


@dataclass(frozen=True)
class Stored:
    """The fixtures of some scenes."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, release: str, *scenes: str) -> "Stored":
        return cls(tuple(Path(__file__).parent / release / scene for scene in scenes))

    @cached_property
    def once(self) -> dict[JobName, Object]:
        """What `reconcile --once -o json` said of each job."""
        return self._jobs("once.json")

    @cached_property
    def status(self) -> dict[JobName, Object]:
        """What `status -o json` said of each job."""
        return self._jobs("status.json")

    def objects(self) -> Iterator[Object]:
        """All objects, those of a job one after another, owners first."""
        for folder in self.folders:
            for file in sorted((folder / "objects").iterdir()):
                yield from json.loads(file.read_text(encoding="utf-8"))

    def restore(self, stage: Stage, *, pods: bool = True) -> None:
        """Bring specs and records back, and the pods with what they own.

        Pods that were on a node are on another one now, which the sandbox doesn't play: they stay
        as they were until the test ends them.
        """
        for folder in self.folders:
            shutil.copytree(folder / "specs", stage.engine.folder / folder.name)
        for item in self.objects():
            if pods or is_record(item):
                if item["kind"] == "Pod" and "nodeName" in item["spec"]:
                    item["spec"]["nodeName"] = _OTHER_NODE
                stage.sandbox.restore(item)

    def _jobs(self, file: str) -> dict[JobName, Object]:
        found: dict[JobName, Object] = {}
        for folder in self.folders:
            found |= by_job(json.loads((folder / file).read_text(encoding="utf-8")))
        return found


def by_job(result: Object) -> dict[JobName, Object]:
    """The entries of a JSON result, by namespace and name."""
    return {(entry["namespace"], entry["name"]): entry for entry in result["jobs"]}


def is_record(item: Object) -> bool:
    labels = item["metadata"].get("labels") or {}
    return bool(labels.get("jobs.engine/component") == "record")


def missing_from(found: Any, said: Any, where: str = "") -> list[str]:
    """Where `found` doesn't say what `said` says; it may say more."""
    if isinstance(said, dict) and isinstance(found, dict):
        return [
            line
            for key, value in said.items()
            for line in missing_from(found.get(key, "nothing"), value, f"{where}.{key}")
        ]
    if isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        pairs = enumerate(zip(found, said, strict=True))
        return [line for i, (a, b) in pairs for line in missing_from(a, b, f"{where}[{i}]")]
    return [] if found == said else [f"{where}: {found!r} instead of {said!r}"]
