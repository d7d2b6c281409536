"""One object that is judged, and how the objects of a job are found."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from engine.cluster import api
from engine.cluster.api import CONFIG_MAPS, PODS, SECRETS, Metadata, Resource
from engine.cluster.client import Client
from engine.lifecycle.ownership import NeverRan, Proof, Recorded
from engine.lifecycle.record import Record
from engine.prune.result import PruneAction, PruneEntry
from engine.prune.rule import counts_from_scheduling
from engine.refs import JobKey, Ref, parse_pod_name, record_name
from engine.runtime.retry import TRIES, retry_transient
from engine.wellknown import COMPONENT, JOB, MANAGED_BY, MANAGER, RECORD, SOURCE

_SYSTEM = "kube-"


class PruneCandidate(Struct, frozen=True):
    """An object, by its metadata."""

    resource: Resource
    metadata: Metadata
    proof: Proof
    """Why it may be deleted, once it has to go."""
    pod: Mapping[str, Any] | None = None
    """The whole pod, if it was read."""

    @property
    def ref(self) -> Ref:
        return self.resource.ref(self.metadata)

    @property
    def is_proven(self) -> bool:
        """Whether its proof covers it."""
        return self.proof.covers(self.resource.kind, self.metadata)

    @property
    def uid(self) -> str:
        """Empty for a record that was read without its metadata."""
        return str(self.metadata.get("uid", ""))

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def job(self) -> JobKey | None:
        """The job whose record may have it: a pod's name can't be changed, as labels can."""
        parsed = parse_pod_name(self.ref.name) if self.resource is PODS else None
        return JobKey(self.ref.namespace, parsed[0]) if parsed is not None else None

    @property
    def has_to_be_read(self) -> bool:
        """Whether it can't be deleted or judged by this metadata alone."""
        is_pod = self.resource.kind == "Pod" and self.pod is None
        return self.is_record or (is_pod and counts_from_scheduling(self.metadata))

    @property
    def is_record(self) -> bool:
        """Whether it is a run record, which ages by a rule of its own."""
        return self.resource.kind == "ConfigMap" and self.labels.get(COMPONENT) == RECORD

    @property
    def system_namespace(self) -> str:
        """The `kube-*` namespace that it is in, or is; "" for everything else."""
        is_namespace = self.resource.kind == "Namespace"
        namespace = self.ref.name if is_namespace else self.ref.namespace
        return namespace if namespace.startswith(_SYSTEM) else ""

    def entry(self, action: PruneAction, reason: str) -> PruneEntry:
        return PruneEntry(self.ref, action, reason)


def record_candidate(record: Record, proof: Proof) -> PruneCandidate:
    """A record as it was read, without UID and version: it is read again before it is deleted."""
    metadata = {
        "name": record_name(record.key.name),
        "namespace": record.key.namespace,
        "labels": {COMPONENT: RECORD},
        "annotations": record.annotations,
    }
    return PruneCandidate(CONFIG_MAPS, metadata, proof)


def list_candidates(
    client: Client, resource: Resource, namespace: str, selector: str, proof: Proof
) -> Iterator[PruneCandidate]:
    """The objects by their metadata, read page by page; `proof` is to cover what has to go.

    Errors: those of the API once a page has failed several times; ExpiredError at once.
    """
    retry = partial(retry_transient, tries=TRIES)
    path = resource.path(namespace)
    for page in api.list_pages(client, path, selector, accept=api.METADATA_LIST, retry=retry):
        for item in page["items"]:
            yield PruneCandidate(resource, item["metadata"], proof)


def objects_of(
    client: Client, record: Record, kinds: Iterable[Resource] = (PODS, SECRETS, CONFIG_MAPS)
) -> tuple[list[PruneCandidate], set[str]]:
    """What is a job's own beside its record, and the UIDs of what only carries its labels.

    A pod in the record is found by its name, whatever labels it has by now.
    Errors: those of the API.
    """
    key, proof = record.key, Recorded(record)
    selector = f"{MANAGED_BY}={MANAGER},{SOURCE}={record.source},{JOB}={key.name}"
    labelled = {
        candidate.uid: candidate
        for resource in kinds
        for candidate in list_candidates(client, resource, key.namespace, selector, proof)
        if not candidate.is_record
    }
    own = [one for one in labelled.values() if one.is_proven]
    for uid, name in record.pods.items():
        if uid not in labelled:
            metadata = api.get_metadata(client, Ref("Pod", key.namespace, name))
            if metadata is not None and metadata["uid"] == uid:
                own.append(PruneCandidate(PODS, metadata, proof))
    for one in [one for one in labelled.values() if one.job == key and not one.is_proven]:
        pod = api.get(client, one.ref)
        if pod is not None and (gated := gated_candidate(pod)).is_proven:
            own.append(gated)
    return own, labelled.keys() - {one.uid for one in own}


def gated_candidate(pod: Mapping[str, Any]) -> PruneCandidate:
    """A pod that never ran, if it is proven to be one."""
    return PruneCandidate(PODS, pod["metadata"], NeverRan(pod), pod)
