"""An engine against the model of a cluster: its memory, its cache, and each action carried out.

It does what `engine.reconcile.executor` and the informer do, one write at a time, so that a crash
or a lost reply can come between any two.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from engine.api.model import Job
from engine.decide import decide
from engine.decide.actions import (
    Action,
    ConfirmDeleted,
    CreateDependents,
    CreatePod,
    DeletePod,
    Done,
    FindPullCause,
    RefreshPod,
    RemoveSchedulingGate,
    RestoreDependents,
    StampExpiry,
    Wait,
    WriteRecord,
)
from engine.decide.record import Record
from engine.decide.situation import Observed, Rejection, RejectionKind, Situation
from engine.status.deletion import UNSEEN, Deletion, read_deleted
from engine.status.outcome import Outcome
from engine.status.waiting import pull_errors
from tests.unit.decide.model_cluster import (
    ADMISSION_WORDS,
    DEPENDENTS,
    QUOTA_WORDS,
    SOURCE_NAME,
    Cluster,
    ConflictError,
    ExistsError,
    GoneError,
    Pod,
    RefusedError,
)

RETRY_AFTER = timedelta(seconds=5)
MOST_STEPS = 100


class LostReplyError(Exception):
    """The write has happened; the engine doesn't learn it."""


class FailedError(Exception):
    """The request has failed, nothing has happened."""


@dataclass
class Engine:
    """One process. `fault` strikes at the next write: "lost", "failed", or "" for none."""

    cluster: Cluster
    job: Job
    record: Record | None = None
    settled: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    rejection: Rejection | None = None
    causes: dict[tuple[str, str], str] = field(default_factory=dict)
    failing_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    asked: dict[str, datetime] = field(default_factory=dict)
    looked_up: dict[tuple[str, bool], datetime] = field(default_factory=dict)
    cache: dict[str, Pod] = field(default_factory=dict)
    dead: dict[str, Outcome | None] = field(default_factory=dict)
    deletions: dict[str, Deletion] = field(default_factory=dict)
    position: int = 0
    booting: int = 2
    fault: str = ""
    writes_before_fault: int = 0

    def crash(self) -> "Engine":
        """The same engine, started again; it has yet to read the records and the pods."""
        return Engine(self.cluster, self.job)

    def step(self) -> Action | None:
        """Boot, or decide once and act; None while booting or after a failure."""
        if self.booting:
            self._boot()
            return None
        action = decide(self.situation())
        try:
            self._act(action)
        except (LostReplyError, FailedError):
            return None
        finally:
            self.fault = ""
        return action

    def situation(self) -> Situation:
        now = self.cluster.now
        for pod in self.cache.values():
            for trouble in pull_errors(pod):
                place = (pod["metadata"]["uid"], trouble.container)
                self.failing_since.setdefault(place, now)
                if trouble.has_cause:
                    self.causes.setdefault(place, trouble.message)
        observed = Observed(
            pods=tuple(self.cache.values()),
            dependents_ready=frozenset(self.settled),
            deleted_uids=frozenset(self.gone),
            rejection=self.rejection,
            pull_causes=self.causes,
            pull_failing_since=self.failing_since,
            refreshed_at=self.asked,
            dependents_looked_up=self.looked_up,
            deleted_outcomes={
                uid: end for uid in self.gone if (end := self.dead.get(uid)) is not None
            },
            deletions=self.deletions,
        )
        return Situation(self.job, self.record, observed, now, SOURCE_NAME)

    def hear(self, count: int) -> None:
        """The watch delivers the next `count` events."""
        if self.booting:
            return
        for kind, pod in self.cluster.log[self.position : self.position + count]:
            if kind == "DELETED":
                self._bury(pod["metadata"]["uid"], pod)
            else:
                self._put(pod)
            self.position += 1

    @property
    def is_at_rest(self) -> bool:
        return not self.booting and self.position == len(self.cluster.log)

    def work(self, steps: int = MOST_STEPS) -> Action | None:
        """Step until there is nothing to do now; the last action."""
        action: Action | None = None
        for _ in range(steps):
            action = self.step()
            if isinstance(action, Wait | Done):
                return action
        assert steps < MOST_STEPS, f"does not settle: {action}"
        return action

    def _boot(self) -> None:
        """Records first, then pods, and something may happen in between."""
        self.booting -= 1
        if self.booting:
            self.record = self.cluster.record
            return
        pods = [self.cluster.get(name) for name in self.cluster.pods]
        self.cache = {pod["metadata"]["uid"]: pod for pod in pods if pod is not None}
        self.position = len(self.cluster.log)

    def _act(self, action: Action) -> None:
        match action:
            case CreatePod():
                self._create_pod(action)
            case CreateDependents():
                self._create_dependents(action)
            case RestoreDependents():
                self._restore_dependents(action)
            case WriteRecord():
                self._write_record(action)
            case RemoveSchedulingGate():
                self._ungate(action)
            case DeletePod():
                self._delete_pod(action)
            case ConfirmDeleted():
                self._look_again(action.pod, action.uid)
            case RefreshPod():
                self._look_again(action.pod, action.uid)
                self.record = self.cluster.record
                self.asked[action.uid] = self.cluster.now
            case StampExpiry():
                self._send(lambda: self.cluster.stamp(action))
                self._look_again(action.pod, action.uid)
            case FindPullCause():
                self.causes[action.uid, action.container] = "the cause was not reported"
            case Wait() | Done():
                pass
            case _:
                raise AssertionError(f"not to be expected: {action}")

    def _send(self, write: Callable[[], None]) -> None:
        """Carry out one write, unless the fault is due."""
        due = self.fault if self.writes_before_fault <= 0 else ""
        self.writes_before_fault -= 1
        if due == "failed":
            raise FailedError
        write()
        if due == "lost":
            raise LostReplyError

    def _create_pod(self, action: CreatePod) -> None:
        made: list[Pod] = []
        try:
            self._send(
                lambda: made.append(
                    self.cluster.create_pod(self.job, action.attempt, dict(action.policies))
                )
            )
        except ExistsError:
            name = f"{self.job.name}-{self.job.run}-{action.attempt}"
            found = self.cluster.get(name)
            if found is not None:
                self.rejection = None
                self._put(found)
            return
        except RefusedError as error:
            self._remember(error, "")
            return
        self.rejection = None
        self._put(made[0])

    def _create_dependents(self, action: CreateDependents) -> None:
        for kind in DEPENDENTS:
            try:
                self._create_owned(kind, action.pod, action.uid)
            except RefusedError as error:
                self._remember(error, action.uid)
                return
        self.rejection = None
        self.settled.add(action.uid)

    def _restore_dependents(self, action: RestoreDependents) -> None:
        for kind in DEPENDENTS:
            with suppress(RefusedError):
                if (kind, action.pod) not in self.cluster.dependents:
                    self._create_owned(kind, action.pod, action.uid)
        self.looked_up[action.uid, action.reported] = self.cluster.now

    def _create_owned(self, kind: str, name: str, uid: str) -> None:
        assert uid not in self.dead, f"{kind} for a pod that is known to be gone"
        try:
            self._send(lambda: self.cluster.create_dependent(kind, name, uid))
        except ExistsError:
            owner = self.cluster.dependents[kind, name]
            if owner != uid:
                self._send(lambda: self.cluster.delete_dependent(kind, name, owner))
                self._send(lambda: self.cluster.create_dependent(kind, name, uid))

    def _write_record(self, action: WriteRecord) -> None:
        try:
            self._send(lambda: self._keep(action.record))
        except (ConflictError, ExistsError):
            self.record = self.cluster.record
        except GoneError:
            self._send(lambda: self._keep(replace(action.record, version="")))

    def _keep(self, record: Record) -> None:
        written = self.cluster.write_record(record)
        if self.fault != "lost" or self.writes_before_fault >= 0:
            self.record = written

    def _ungate(self, action: RemoveSchedulingGate) -> None:
        made: list[Pod] = []
        try:
            self._send(
                lambda: made.append(self.cluster.ungate(action.pod, action.uid, action.gate_index))
            )
        except (GoneError, ConflictError):
            self._look_again(action.pod, action.uid)
            return
        self._put(made[0])

    def _delete_pod(self, action: DeletePod) -> None:
        with suppress(GoneError, ConflictError):
            self._send(lambda: self.cluster.delete_pod(action))
        self._look_again(action.pod, action.uid)

    def _look_again(self, name: str, uid: str) -> None:
        found = self.cluster.get(name)
        if found is None or found["metadata"]["uid"] != uid:
            self.gone.add(uid)
            self._bury(uid, self.cache.get(uid))
        if found is not None:
            self._put(found)

    def _put(self, pod: Pod) -> None:
        metadata = pod["metadata"]
        known = self.cache.get(metadata["uid"])
        if metadata["uid"] in self.dead:
            return
        self._note_deletion(pod)
        if known is None or _version(known) < _version(pod):
            self.cache[metadata["uid"]] = pod

    def _bury(self, uid: str, last: Pod | None) -> None:
        if last is not None and self.dead.get(uid) is None:
            self._note_deletion(last)
            self.dead[uid] = read_deleted(last, self.deletions.get(uid, UNSEEN), gone=True)
        self.dead.setdefault(uid, None)
        self.cache.pop(uid, None)

    def _note_deletion(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        self.deletions[uid] = self.deletions.get(uid, UNSEEN).seen(pod, self.cache.get(uid))

    def _remember(self, error: RefusedError, uid: str) -> None:
        quota = str(error) == "quota"
        self.rejection = Rejection(
            RejectionKind.QUOTA if quota else RejectionKind.ADMISSION,
            QUOTA_WORDS if quota else ADMISSION_WORDS,
            self.cluster.now + RETRY_AFTER,
            uid,
        )


def _version(pod: Pod) -> int:
    return int(pod["metadata"]["resourceVersion"])
