"""What things are called: objects, jobs, and the names derived from those."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_POD_NAME = re.compile(r"(.+)-([0-9a-f]{8})-([1-9][0-9]{0,8})")

MAIN_CONTAINER = "main"
"""Name of the job's own container."""
GATE = "jobs.engine/dependents"
"""The scheduling gate of a pod whose Secret and ConfigMap don't exist yet."""


class JobKey(Struct, frozen=True, order=True):
    """Identity of a job in a cluster; also the key of the work queue."""

    namespace: str
    """The job's namespace."""
    name: str
    """The job's name in it."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Ref(Struct, frozen=True, order=True):
    """Reference to one object; prints as people write it, `pod/ci/build-3f9c2a1b-1`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.namespace}/{self.name}"


def ref_of(manifest: Mapping[str, Any]) -> Ref:
    """The reference to the object that a manifest makes."""
    metadata = manifest["metadata"]
    return Ref(manifest["kind"], metadata.get("namespace", ""), metadata["name"])


def pod_name(job: str, run: str, attempt: int) -> str:
    """Name of the pod of one attempt, and of the Secret and ConfigMap that it owns."""
    return f"{job}-{run}-{attempt}"


def parse_pod_name(name: str) -> tuple[str, str, int] | None:
    """Job, run and attempt that `pod_name` gave this name for; None where it gives no such name.

    A name can't be changed, as a label can.
    """
    found = _POD_NAME.fullmatch(name)
    return (found[1], found[2], int(found[3])) if found else None


def record_name(job: str) -> str:
    """Name of a job's run record; the dot keeps it apart from every job's other objects."""
    return f"{job}.record"
