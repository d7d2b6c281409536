"""One object that is judged, and the verdict as a line of the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.cluster.api import CONFIG_MAPS, Metadata, Resource
from engine.lifecycle.record import Record
from engine.prune.result import PruneAction, PruneEntry
from engine.prune.rule import Verdict, counts_from_scheduling
from engine.refs import JobKey, Ref, record_name
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD

_SYSTEM = "kube-"


@dataclass(frozen=True, slots=True)
class PruneCandidate:
    """An object, by its metadata."""

    resource: Resource
    metadata: Metadata
    pod: Mapping[str, Any] | None = None
    """The whole pod, if it was read."""

    @property
    def ref(self) -> Ref:
        return self.resource.ref(self.metadata)

    @property
    def uid(self) -> str:
        """Empty for a record that was read without its metadata."""
        return str(self.metadata.get("uid", ""))

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def job(self) -> JobKey | None:
        """The job of the object, if its labels say that the engine made it."""
        labels = self.labels
        if labels.get(MANAGED_BY) != MANAGER or not labels.get(JOB):
            return None
        return JobKey(self.metadata.get("namespace", ""), labels[JOB])

    @property
    def has_to_be_read(self) -> bool:
        """Whether it can't be deleted or judged by this metadata alone."""
        is_pod = self.resource.kind == "Pod" and self.pod is None
        return not self.uid or (is_pod and counts_from_scheduling(self.metadata))

    @property
    def is_record(self) -> bool:
        """Whether it is a run record, which ages by a rule of its own."""
        return self.resource.kind == "ConfigMap" and self.labels.get(COMPONENT) == RECORD

    @property
    def job_of_record(self) -> JobKey | None:
        """The job whose record it is, by its name; None for any other name."""
        name = self.ref.name.removesuffix(record_name(""))
        return JobKey(self.ref.namespace, name) if name != self.ref.name else None

    @property
    def system_namespace(self) -> str:
        """The `kube-*` namespace that it is in, or is; "" for everything else."""
        is_namespace = self.resource.kind == "Namespace"
        namespace = self.ref.name if is_namespace else self.ref.namespace
        return namespace if namespace.startswith(_SYSTEM) else ""

    def entry(self, action: PruneAction, reason: str) -> PruneEntry:
        return PruneEntry(self.ref, action, reason)

    def to_entry(self, verdict: Verdict) -> PruneEntry:
        """The line for an object that is not deleted."""
        return self.entry(verdict.action, verdict.reason)


def record_ref(key: JobKey) -> Ref:
    """The ConfigMap that is the record of a job."""
    return Ref("ConfigMap", key.namespace, record_name(key.name))


def record_candidate(record: Record) -> PruneCandidate:
    """A record as it was read, without UID and version: it is read again before it is deleted."""
    metadata = {
        "name": record_name(record.key.name),
        "namespace": record.key.namespace,
        "labels": {COMPONENT: RECORD},
        "annotations": record.annotations,
    }
    return PruneCandidate(CONFIG_MAPS, metadata)
