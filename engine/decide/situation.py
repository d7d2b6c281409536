"""Everything a decision is made from: the spec, the record, what is in the cluster, the time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from engine.api.model import Job, PullSettings
from engine.decide.record import Record
from engine.refs import GATE
from engine.status.containers import ends_by_itself
from engine.status.deletion import UNSEEN, Deletion
from engine.status.outcome import Outcome
from engine.wellknown import ATTEMPT, RUN

CERTAIN_FOR = timedelta(seconds=10)
DEFAULT_PULL = PullSettings()
FINISHED_PHASES = frozenset({"Succeeded", "Failed"})

Pod = Mapping[str, Any]


class RefusalKind(StrEnum):
    QUOTA = "quota"
    ADMISSION = "admission"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The server's last answer to a create was no; a quota may be asked again at `retry_at`.

    `uid` is of the pod whose Secret or ConfigMap was refused; "" when it was the pod itself.
    """

    kind: RefusalKind
    message: str
    retry_at: datetime
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known of the cluster.

    `pods` are all pods of the job. `settled` are UIDs of pods whose Secret and ConfigMap are known
    to exist, `gone` UIDs that the API itself no longer has, `ends` what the states of a pod
    that is gone told of its end, by UID, `deletions` what was seen of the deletion of a pod, by
    UID. `looked_up` is when a pod's Secret and ConfigMap were looked up and, if need be, made anew,
    by (UID, whether the pod had said that it lacks one).
    `causes` and `failing_since` are by (UID, container): the first real message of a pull failure,
    and when it was first seen.
    `asked` is when the API itself was last asked for a pod and its record, by UID.
    """

    pods: tuple[Pod, ...] = ()
    settled: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    refusal: Refusal | None = None
    causes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    failing_since: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    ends: Mapping[str, Outcome] = field(default_factory=dict)
    asked: Mapping[str, datetime] = field(default_factory=dict)
    looked_up: Mapping[tuple[str, bool], datetime] = field(default_factory=dict)
    deletions: Mapping[str, Deletion] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Situation:
    """Input of every rule."""

    job: Job
    record: Record | None
    observed: Observed
    now: datetime
    source: str
    pull: PullSettings = DEFAULT_PULL

    @property
    def run_record(self) -> Record:
        """Record of the spec's own run; a new one if the record is of another run, or missing."""
        if self.record is None:
            base = self._latest_number() - 1
            return Record(self.job.key, self.source, self.job.spec_hash, base=base)
        if self.record.spec_hash != self.job.spec_hash:
            return self.record.next_run(self.job.spec_hash)
        return self.record

    def pod_of(self, uid: str) -> Pod | None:
        return next((p for p in self.observed.pods if uid_of(p) == uid), None)

    def deletion_of(self, uid: str) -> Deletion:
        return self.observed.deletions.get(uid, UNSEEN)

    def pod_of_attempt(self, number: int) -> Pod | None:
        """The pod of the spec's own run and this attempt, if there is one."""
        for pod in self.observed.pods:
            labels = pod["metadata"].get("labels") or {}
            if labels.get(RUN) == self.job.run and labels.get(ATTEMPT) == str(number):
                return pod
        return None

    def _latest_number(self) -> int:
        """Of the attempts whose pods are there: a record that somebody deleted is missed."""
        labels = [pod["metadata"].get("labels") or {} for pod in self.observed.pods]
        numbers = [found.get(ATTEMPT, "") for found in labels if found.get(RUN) == self.job.run]
        return max((int(number) for number in numbers if number.isdecimal()), default=1)

    def is_certain_of(self, uid: str) -> bool:
        """Whether pod and record are as the API had them a moment ago, not as a watch left them."""
        asked = self.observed.asked.get(uid)
        return asked is not None and self.now - asked < CERTAIN_FOR

    def other_pods(self, uid: str) -> list[Pod]:
        """Pods of the job, of any run, that have not finished and are not the one with `uid`."""
        return [p for p in self.observed.pods if uid_of(p) != uid and not is_finished(p)]


def uid_of(pod: Pod) -> str:
    return str(pod["metadata"]["uid"])


def name_of(pod: Pod) -> str:
    return str(pod["metadata"]["name"])


def is_terminating(pod: Pod) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_finished(pod: Pod) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED_PHASES


def has_ended(pod: Pod) -> bool:
    """Whether nothing of the job runs in it any more; its phase follows a second or two later."""
    return is_finished(pod) or ends_by_itself(pod)


def gate_position(pod: Pod) -> tuple[int, int] | None:
    """(index, count) of the engine's gate among the pod's gates; None for a pod without it."""
    gates = (pod.get("spec") or {}).get("schedulingGates") or []
    names = [gate.get("name") for gate in gates]
    return (names.index(GATE), len(names)) if GATE in names else None
