"""One object that is judged, and the verdict as a line of the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.cluster.api import Metadata, Resource
from engine.decide.prune.rule import Deleting, Invalid, Keep, Protected, counts_from_scheduling
from engine.prune.result import KeepReason, PruneAction, PruneEntry
from engine.refs import JobKey, Ref, record_name
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD

_SYSTEM = "kube-"
_ROOT_CERTIFICATE = "kube-root-ca.crt"


@dataclass(frozen=True, slots=True)
class PruneCandidate:
    """An object, by what its metadata says."""

    resource: Resource
    metadata: Metadata
    pod: Mapping[str, Any] | None = None
    """The whole of it, where somebody has read that."""

    @property
    def ref(self) -> Ref:
        """The object's name."""
        return self.resource.ref(self.metadata)

    @property
    def uid(self) -> str:
        """The object itself: another one of its name has another."""
        return str(self.metadata["uid"])

    @property
    def labels(self) -> dict[str, str]:
        """{} without any."""
        return self.metadata.get("labels") or {}

    @property
    def job(self) -> JobKey | None:
        """The job that the object is of, if the engine made it."""
        labels = self.labels
        if labels.get(MANAGED_BY) != MANAGER or not labels.get(JOB):
            return None
        return JobKey(self.metadata.get("namespace", ""), labels[JOB])

    @property
    def is_engine_pod(self) -> bool:
        """Whether its outcome belongs into a record."""
        return self.resource.kind == "Pod" and self.job is not None

    @property
    def has_to_be_read(self) -> bool:
        """Whether its metadata doesn't tell since when its TTL counts."""
        is_pod = self.resource.kind == "Pod" and self.pod is None
        return is_pod and counts_from_scheduling(self.metadata)

    @property
    def is_record(self) -> bool:
        """Whether it is a run record, which ages by a rule of its own."""
        return self.resource.kind == "ConfigMap" and self.labels.get(COMPONENT) == RECORD

    @property
    def job_of_record(self) -> JobKey | None:
        """The job that it is the record of, by its name; None if it isn't named as a record is."""
        name = self.ref.name.removesuffix(record_name(""))
        return JobKey(self.ref.namespace, name) if name != self.ref.name else None

    @property
    def system_namespace(self) -> str:
        """The namespace of Kubernetes' own that it is in, or is; "" for everything else."""
        is_namespace = self.resource.kind == "Namespace"
        namespace = self.ref.name if is_namespace else self.ref.namespace
        return namespace if namespace.startswith(_SYSTEM) else ""

    @property
    def is_root_certificate(self) -> bool:
        """Whether it is what Kubernetes puts into every namespace for pods to trust its API."""
        return self.resource.kind == "ConfigMap" and self.ref.name == _ROOT_CERTIFICATE

    def to_entry(self, verdict: Keep | Protected | Invalid | Deleting) -> PruneEntry:
        """The line for an object that is not deleted."""
        match verdict:
            case Keep(reason, until):
                why = KeepReason.OWNED if until is None else KeepReason.NOT_EXPIRED
                return PruneEntry(self.ref, PruneAction.KEPT, reason, why, until)
            case Protected(reason):
                return PruneEntry(self.ref, PruneAction.PROTECTED, reason)
            case Invalid(reason):
                return self.invalid(reason)
            case Deleting(reason, stuck):
                if stuck:
                    return PruneEntry(self.ref, PruneAction.FAILED, reason)
                return PruneEntry(self.ref, PruneAction.KEPT, reason, KeepReason.DELETING)

    def kept(self, reason: str, why: KeepReason) -> PruneEntry:
        """It stays, for a reason of this run."""
        return PruneEntry(self.ref, PruneAction.KEPT, reason, why)

    def over_budget(self, reason: str) -> PruneEntry:
        """It would go, but for the limit of deletes."""
        return self.kept(f"{reason}; the limit of deletes is reached", KeepReason.OVER_BUDGET)

    def deleted(self, reason: str) -> PruneEntry:
        """It is gone, or on its way."""
        return PruneEntry(self.ref, PruneAction.DELETED, reason)

    def would_delete(self, reason: str) -> PruneEntry:
        """It would go, but for the dry run."""
        return PruneEntry(self.ref, PruneAction.WOULD_DELETE, reason)

    def invalid(self, reason: str) -> PruneEntry:
        """It stays, for what decides over it can't be read."""
        return PruneEntry(self.ref, PruneAction.INVALID, reason)

    def failed(self, reason: str) -> PruneEntry:
        """It should be gone, and isn't."""
        return PruneEntry(self.ref, PruneAction.FAILED, reason)
