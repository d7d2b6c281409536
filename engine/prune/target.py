"""One object that is judged, and the verdict as a line of the result."""

from dataclasses import dataclass

from engine.cluster.api import Metadata, Resource
from engine.decide.prune import Deleting, Invalid, Keep, Protected
from engine.prune.result import PruneAction, PruneEntry, Why
from engine.refs import JobKey, Ref
from engine.wellknown import ATTEMPT, COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD


@dataclass(frozen=True, slots=True)
class Target:
    """An object, by what its metadata says."""

    resource: Resource
    metadata: Metadata

    @property
    def ref(self) -> Ref:
        return self.resource.ref(self.metadata)

    @property
    def uid(self) -> str:
        return str(self.metadata["uid"])

    @property
    def labels(self) -> dict[str, str]:
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
        return self.resource.kind == "Pod" and self.job is not None

    @property
    def is_dependent(self) -> bool:
        """A Secret or ConfigMap that one of the engine's pods should own."""
        return (
            self.resource.kind in ("Secret", "ConfigMap")
            and self.job is not None
            and ATTEMPT in self.labels
            and self.labels.get(COMPONENT) != RECORD
        )

    @property
    def is_record(self) -> bool:
        return self.resource.kind == "ConfigMap" and self.labels.get(COMPONENT) == RECORD

    def stays(self, verdict: Keep | Protected | Invalid | Deleting) -> PruneEntry:
        match verdict:
            case Keep(reason, until):
                why = Why.OWNED if until is None else Why.YOUNG
                return PruneEntry(self.ref, PruneAction.KEPT, reason, why, until)
            case Protected(reason):
                return PruneEntry(self.ref, PruneAction.PROTECTED, reason)
            case Invalid(reason):
                return PruneEntry(self.ref, PruneAction.INVALID, reason)
            case Deleting(reason, stuck):
                if stuck:
                    return PruneEntry(self.ref, PruneAction.FAILED, reason)
                return PruneEntry(self.ref, PruneAction.KEPT, reason, Why.DELETING)

    def kept(self, reason: str, why: Why = Why.LAST_FAILED) -> PruneEntry:
        return PruneEntry(self.ref, PruneAction.KEPT, reason, why)

    def braked(self, reason: str) -> PruneEntry:
        return self.kept(f"{reason}; the limit of deletes is reached", Why.BRAKED)

    def deleted(self, reason: str) -> PruneEntry:
        return PruneEntry(self.ref, PruneAction.DELETED, reason)

    def would_go(self, reason: str) -> PruneEntry:
        return PruneEntry(self.ref, PruneAction.WOULD_DELETE, reason)

    def failed(self, reason: str) -> PruneEntry:
        return PruneEntry(self.ref, PruneAction.FAILED, reason)
