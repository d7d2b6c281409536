"""Everything a decision is made from: the spec, the record, what is in the cluster, the time."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import filterfalse
from operator import itemgetter
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from engine.api.model import Job, PullSettings, RecordSettings
from engine.errors import ApiError, QuotaExceededError
from engine.lifecycle.actions import DeletePod, RefreshPod, Wait
from engine.lifecycle.predecessors import Predecessor
from engine.lifecycle.record import FIRST_RUN, Attempt, PullFailure, Record
from engine.refs import GATE, JobKey, parse_pod_name, pod_name
from engine.status.containers import container_states, main_containers_terminated
from engine.status.deletion import Deletion
from engine.status.disruption import read_announced_disruption
from engine.status.outcome import Masked, Outcome, Reason, State
from engine.times import earliest
from engine.wellknown import ATTEMPT, JOB, MANAGED_BY, MANAGER, RUN, SOURCE

FRESH_FOR = timedelta(seconds=10)
"""How long an answer of the API itself counts as fresh."""
Pod = Mapping[str, Any]
_POD_FIELDS = ("schedulingGates", "activeDeadlineSeconds", "nodeName")
_CONTAINER_FIELDS = ("name", "image", "imagePullPolicy", "restartPolicy")


class Rejection(Struct, frozen=True):
    """The server's last answer to a write that a pod needs to start was no."""

    kind: type[ApiError]
    """QuotaExceededError: there may be room later. AdmissionRefusedError is final for this spec.
    ForbiddenError: a right that the engine lacks, and may be given.
    """
    message: Masked
    """The server's words: for people, while decisions compare `key`."""
    retry_at: datetime
    """When the server may be asked again."""
    uid: str = ""
    """Of the pod whose Secret, ConfigMap or release was refused; "" when it was the pod itself."""
    hint: str = ""
    """What the reader can do, beyond the server's words."""
    record_version: str | None = None
    """Of the record, where its write was refused, "" if there was none; None for other writes."""
    quota: str = ""
    """Name of the quota that has no room, as far as the server says it."""

    @property
    def key(self) -> str:
        """What was refused by what: the same for the same refusal, in whatever words."""
        return f"{self.kind.__name__.removesuffix('Error')} {self.quota}".rstrip()


class ImageHold(Struct, frozen=True):
    """Another job pulls an image that this one needs, too, or has just failed to."""

    container: str
    """The container of this job that needs it."""
    image: str
    """The image."""
    policy: str
    """Its pull policy."""
    since: datetime
    """Since when the other job pulls it; or when that failed."""
    scout: JobKey | None = None
    """The other job; None once it is over."""
    due: datetime | None = None
    """When this job goes without it, as it doesn't even pull; None once it does."""
    failure: PullFailure | None = None
    """How it failed."""


class Observation(Struct):
    """What was observed of a job's pods. Rules only read it; the reconciler keeps it up to date."""

    pods: tuple[Pod, ...] = ()
    """All pods that are named as the job's are, as the cache has them: a name proves nothing."""
    deletions: Mapping[str, Deletion] = {}
    """What was seen of the deletion of pods that are still there, by UID."""
    created: dict[str, str] = {}
    """UIDs of pods that this engine made, and the record's version then ("" for none): until
    another version is written, no other engine can have given the pod up.
    """
    dependents_ready: frozenset[str] = frozenset()
    """UIDs of pods whose Secret and ConfigMap are known to exist."""
    secrets_missing: dict[str, str] = {}
    """What pods refer to that isn't there, by UID: others' Secrets, or keys in them."""
    dependents_looked_up: dict[tuple[str, bool], datetime] = {}
    """When a pod's Secret and ConfigMap were looked up and, if need be, made anew, by UID and
    whether the pod had said that it lacks one.
    """
    deleted_uids: frozenset[str] = frozenset()
    """UIDs that the API itself no longer has."""
    deleted_outcomes: Mapping[str, Outcome] = {}
    """How a pod that is gone had ended, by UID, where its states say so."""
    read_ungated: set[str] = set()
    """UIDs of pods that had no gate before the record was last read. An engine records a pod before
    it removes the gate.
    """
    refreshed_at: dict[str, datetime] = {}
    """When the API itself was last asked for a pod and its record, by UID."""
    pull_causes: dict[tuple[str, str], str] = {}
    """First real message of a pull failure, by UID and container."""
    cached_images: dict[tuple[str, str], bool] = {}
    """Whether the node of a pod lists an image that the pod lacks, by UID and image."""
    rejection: Rejection | None = None
    """The answer to the last write that a pod needs to start, if it was no."""
    rejections: int = 0
    """How many of them there were in a row."""
    given_up: set[str] = set()
    """UIDs of pods whose update, and versions of records whose mark, the server refused; and what
    was written onto a pod before (`UpdatePod.once`).
    """
    predecessors: tuple[Predecessor, ...] = ()
    """The jobs that it waits for, and how far they are."""
    masks_secrets: bool = True
    """Whether every secret of the job is known, so that it is masked in what its pods say."""
    image_holds: tuple[ImageHold, ...] = ()
    """Images that others pull, or have failed to: those of the attempt that comes next."""
    suspended: bool = False
    """Whether `limits.maxStarts` lets no new run of the job begin."""
    superseded: bool = False
    """Whether the record shows a run of another revision, which was asked for later."""
    refused: bool = False
    """Whether the job's object is invalid by now; the job is of its last good version."""
    create_unanswered: bool = False
    """Whether a pod may be there that no answer has named: the reply to its create was lost."""


class LifecycleState(Struct, frozen=True):
    """Input of every rule."""

    job: Job
    """The spec, with its defaults."""
    record: Record | None
    """The run record as it was last read; None if there is none."""
    observed: Observation
    """What is known of the cluster."""
    now: datetime
    """The time of this decision: rules read no clock."""
    source: str
    """The source that the engine acts for."""
    pull: PullSettings = field(default_factory=PullSettings)
    """How pull policies fall back."""
    kept_runs: int = RecordSettings().history
    """How many runs before this one the record keeps."""
    engine: str = ""
    """This process, as the record of an attempt that it begins names it."""
    recorded: Mapping[str, str] = {}
    """Names of the pods in the record, by UID."""
    run_record: Record = cast("Record", None)
    """Record of the spec's own run; a new one if the record is of another run, or missing."""

    def __post_init__(self) -> None:
        """Every rule asks for the run's record: it is made once."""
        job, record = self.job, self.record
        force_setattr(self, "recorded", record.pods if record is not None else {})
        if record is None:
            record = Record(
                job.key, self.source, job.spec_hash, spec_fields=job.spec_fields, cause=FIRST_RUN
            )
        if not (self.observed.superseded and record.spec_hash == job.spec_hash):
            record = record.run_of(job)
        run_record = record.with_history(self.kept_runs)
        force_setattr(self, "run_record", run_record)

    @property
    def decided_record(self) -> Record:
        """The run's record, for what is decided by how the job is tried now."""
        return replace(self.run_record, spec_fields=self.job.spec_fields)

    @property
    def attempt(self) -> Attempt:
        """The run's attempt that is under way: `start_attempt` answers where there is none."""
        return self.run_record.attempts[-1]

    @property
    def pod(self) -> Pod:
        """The pod of that attempt: `close_attempt` answers where there is none."""
        return cast("Pod", self.pod_of(self.attempt.uid))

    def pod_of(self, uid: str) -> Pod | None:
        """The pod with this UID, if there is one; a record that has it under another name lies."""
        found = (pod for pod in self.observed.pods if uid_of(pod) == uid)
        return next((p for p in found if self.recorded.get(uid, name_of(p)) == name_of(p)), None)

    def pod_of_attempt(self, number: int) -> Pod | None:
        """The pod with the name of this attempt of the spec's own run, one of ours if there is."""
        name = pod_name(self.job.name, self.job.run, number)
        named = [pod for pod in self.observed.pods if name_of(pod) == name]
        return max(named, key=self.is_owned, default=None)

    def is_owned(self, pod: Pod) -> bool:
        """Whether the pod was made for this job for certain; what it says of itself proves nothing.

        It is in the record, or was made by this engine and not given up since.
        """
        uid, record = uid_of(pod), self.record
        if self.recorded.get(uid) == name_of(pod):
            return True
        version = record.version if record is not None else ""
        return self.observed.created.get(uid) == version

    def unowned_pods(self) -> Iterator[Pod]:
        """Pods that may run, and are named and labelled as this job's, but are in no record."""
        for pod in filterfalse(self.is_owned, self.observed.pods):
            if not has_ended(pod) and gate_position(pod) is None:
                yield pod

    def unlabelled_pod(self) -> Pod | None:
        """A pod of ours that has not ended, and that no watch follows: its labels were changed."""
        for pod in filter(self.is_owned, self.observed.pods):
            if changed_labels(pod, self.source) and (is_terminating(pod) or not is_finished(pod)):
                return pod
        return None

    def rejected_record(self) -> Rejection | None:
        """The rejection of the record, as long as the record has not been written since."""
        rejection, record = self.observed.rejection, self.record
        version = record.version if record is not None else ""
        return rejection if rejection and rejection.record_version == version else None

    def wait(self, *times: datetime | None) -> Wait:
        """Wait until one of `times`, or until a pod that no watch follows is to be read."""
        pod = self.unlabelled_pod()
        if pod is not None:
            times = (*times, self.observed.refreshed_at.get(uid_of(pod), self.now) + FRESH_FOR)
        return Wait(earliest(*times))

    def delete(self, pod: Pod, why: str) -> DeletePod | RefreshPod | Wait:
        """Delete the pod, at once if nothing of it ever ran, with its own grace otherwise.

        Or wait for a deletion, or an end of its own, that is under way. Only the API can tell
        whether the pod is not of a run or attempt that began since the record was read: another
        engine's, or one that was asked for.
        """
        if is_terminating(pod) or main_containers_terminated(pod):
            return self.wait()
        if not self.is_fresh(uid_of(pod)):
            return RefreshPod(name_of(pod), uid_of(pod))
        grace = None if any(one.running for one in container_states(pod)) else 0
        version = pod["metadata"].get("resourceVersion", "")
        return DeletePod(name_of(pod), uid_of(pod), grace, why, version)

    def delete_first(self, pods: Iterable[Pod], why: str) -> DeletePod | RefreshPod | None:
        """Delete the first of `pods` that doesn't go already."""
        steps = (self.delete(pod, why) for pod in pods)
        return next((step for step in steps if not isinstance(step, Wait)), None)

    def queued(self, record: Record, rejection: Rejection) -> Record:
        """`record` of a run that waits for `rejection` to pass; it keeps its place in the line."""
        reason = Reason.QUOTA_EXCEEDED if rejection.kind is QuotaExceededError else None
        since = record.queued_at or self.now
        return record.queued(rejection.message, since, reason, rejection.key)

    def says_queued(self, rejection: Rejection) -> bool:
        """Whether the record says already that the run waits for this rejection to pass."""
        record = self.run_record
        return record.state is State.QUEUED and record.refused == rejection.key

    def is_fresh(self, uid: str) -> bool:
        """Whether pod and record are as the API had them a moment ago, not as a watch left them."""
        asked = self.observed.refreshed_at.get(uid)
        return asked is not None and self.now - asked < FRESH_FOR

    def is_unrecorded(self, pod: Pod) -> bool:
        """Whether the record was read after the pod had lost its gate, and doesn't have it."""
        uid = uid_of(pod)
        return not self.is_owned(pod) and self.is_fresh(uid) and uid in self.observed.read_ungated

    def other_pods(self, uid: str) -> Iterator[Pod]:
        """Our pods, of any run, that may yet run and are not the one with `uid`."""
        for pod in filter(self.is_owned, self.observed.pods):
            if uid_of(pod) != uid and not is_finished(pod) and held_end(pod) is None:
                yield pod


def slim_pod(pod: dict[str, Any]) -> dict[str, Any]:
    """What decisions are made from; a tenant may have filled the rest."""
    spec, metadata = pod.get("spec") or {}, {**pod["metadata"]}
    metadata.pop("managedFields", None)
    kept = {key: spec[key] for key in _POD_FIELDS if key in spec}
    for name in ("initContainers", "containers"):
        kept[name] = [
            {key: one[key] for key in _CONTAINER_FIELDS if key in one}
            for one in spec.get(name) or ()
        ]
    return {**pod, "metadata": metadata, "spec": kept}


def uid_of(pod: Pod) -> str:
    """A pod's UID."""
    return str(pod["metadata"]["uid"])


def name_of(pod: Pod) -> str:
    """A pod's name."""
    return str(pod["metadata"]["name"])


def run_of(pod: Pod) -> str:
    """The run that a pod's name is of; "" for a name that is no job's."""
    parsed = parse_pod_name(name_of(pod))
    return parsed[1] if parsed else ""


def policies_of(pod: Pod) -> dict[str, str]:
    """Pull policy of each container of a pod."""
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    return {c["name"]: c["imagePullPolicy"] for c in containers if "imagePullPolicy" in c}


def foreign_label(pod: Pod, source: str) -> str:
    """Whose the pod says that it is, if it isn't of this source of the engine's; "" if it is."""
    labels = pod["metadata"].get("labels") or {}
    if labels.get(MANAGED_BY) != MANAGER:
        return f"pod {name_of(pod)} is not one of the engine's"
    if labels.get(SOURCE) != source:
        return f"pod {name_of(pod)} belongs to source {labels.get(SOURCE)!r}, not to {source!r}"
    return ""


def changed_labels(pod: Pod, source: str) -> tuple[str, ...]:
    """The engine's labels that differ from the pod's name, which can't be changed."""
    parsed = parse_pod_name(name_of(pod))
    if parsed is None:
        return ()
    job, run, number = parsed
    own = {MANAGED_BY: MANAGER, JOB: job, RUN: run, ATTEMPT: str(number), SOURCE: source}
    labels = pod["metadata"].get("labels") or {}
    return tuple(key for key, value in own.items() if labels.get(key) != value)


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def held_end(pod: Pod) -> Outcome | None:
    """The end of a deleted pod of which nothing runs any more, and that others' finalizers keep.

    Kubernetes' own finalizers, whose names have no domain, go by themselves.
    """
    holders = ", ".join(one for one in pod["metadata"].get("finalizers") or () if "/" in one)
    may_run = pod["spec"].get("nodeName") and not is_finished(pod)
    if not holders or not is_terminating(pod) or may_run:
        return None
    words = f"pod {name_of(pod)} was deleted, and stays for its finalizer {holders}"
    return read_announced_disruption(pod) or Outcome(Reason.POD_DELETED, words)


def is_finished(pod: Pod) -> bool:
    """Whether the pod's phase is final."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def has_ended(pod: Pod) -> bool:
    """Whether nothing of the job runs in it any more; its phase follows a second or two later."""
    return is_finished(pod) or main_containers_terminated(pod)


def gates_of(pod: Pod) -> list[str]:
    """Names of the pod's scheduling gates."""
    return list(map(itemgetter("name"), (pod.get("spec") or {}).get("schedulingGates") or ()))


def gate_position(pod: Pod) -> tuple[int, int] | None:
    """(index, count) of the engine's gate among the pod's gates; None for a pod without it."""
    gates = gates_of(pod)
    return (gates.index(GATE), len(gates)) if GATE in gates else None


def held_by(pod: Pod) -> str:
    """The scheduling gates of others that hold the pod back, in words; "" for none."""
    gates = gates_of(pod)
    if GATE in gates:
        gates.remove(GATE)
    plural = "s" if len(gates) > 1 else ""
    return f"held by the scheduling gate{plural} {', '.join(gates)}" if gates else ""
