"""One engine on the model of a cluster: the real reconciler and pod informer.

The requests of its client go to the model. A crash, a fault, the node or another engine can come
between any two actions.
"""

import copy
from datetime import datetime
from typing import Any

from engine.api.model import Job, Limits, PullSettings
from engine.cluster.client import JSON, Client, Keep, Query
from engine.cluster.records import read_record
from engine.errors import (
    AdmissionRefusedError,
    ForbiddenError,
    OwnershipError,
    QuotaExceededError,
    UnreachableError,
)
from engine.informers.factory import InformerFactory
from engine.informers.reflector import WatchContext
from engine.lifecycle.actions import RefreshPod, Step
from engine.lifecycle.attempt import RenderConfig
from engine.lifecycle.state import gate_position
from engine.reconcile.job_store import Rendered, TrackedJob
from engine.reconcile.nodes import ImageLocator
from engine.reconcile.reconciler import Reconciler, Result
from engine.reconcile.reporter import AttemptReporter
from engine.render.manifests import SecretValues
from engine.runtime.supervisor import Supervisor
from engine.telemetry.redact import Redactor
from tests.unit.builders import TEMPLATES
from tests.unit.reconcile.model_cluster import NAMESPACE, SOURCE_NAME, Cluster, Pod, uid_of

MOST_STEPS = 100
CONFIG = RenderConfig(TEMPLATES, SOURCE_NAME, Limits())
SECRETS = SecretValues({"TOKEN": "anything"})


class InterruptedBeforeActionError(Exception):
    """The step is over, and the engine has more to do."""


class ModelClient(Client):
    """`fault` strikes at a write: "lost" is its reply, "failed" the request; "" for none."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.fault = ""
        self.writes_before_fault = 0
        self.actions = 0
        """How many the step that is under way may still take."""

    def begin_action(self) -> None:
        """Errors: InterruptedBeforeActionError where the step has had its own."""
        if not self.actions:
            raise InterruptedBeforeActionError
        self.actions -= 1

    def now(self) -> datetime:
        return self.cluster.now

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Query | None = None,
        accept: str = JSON,
        timeout: float | None = None,
        keep: Keep | None = None,
    ) -> dict[str, Any]:
        del accept, timeout
        resource, _, name = path.partition(f"/namespaces/{NAMESPACE}/")[2].partition("/")
        if method == "GET":
            answer = copy.deepcopy(self.cluster.read(resource, name))
            if keep is None:
                return answer
            kept = [one for item in answer.get("items") or () if (one := keep(item)) is not None]
            return {**answer, "items": kept}
        due = self.fault if self.writes_before_fault <= 0 else ""
        self.writes_before_fault -= 1
        if due == "failed":
            raise UnreachableError("nothing has happened")
        dry_run = ("dryRun", "All") in (query or ())
        answer = self.cluster.write(method, resource, name, copy.deepcopy(body), dry_run=dry_run)
        if due == "lost":
            raise UnreachableError("it has happened, and the engine doesn't learn it")
        return copy.deepcopy(answer)


class StepReconciler(Reconciler, frozen=True):
    """Executes one action of each step; what it asks the API for, it knows afterwards."""

    def execute(self, state: TrackedJob, action: Step) -> None:
        assert isinstance(self.client, ModelClient)
        self.client.begin_action()
        super().execute(state, action)
        if isinstance(action, RefreshPod):
            assert state.record == self.client.cluster.record, "decides on an old record"


class Engine:
    """One process with one job."""

    def __init__(self, cluster: Cluster, job: Job) -> None:
        self.cluster = cluster
        self.client = ModelClient(cluster)
        self.refused = ""
        """What it said of a pod that it refused by name in the last step."""
        self._booting = 2
        self._position = 0
        self._state = TrackedJob(job)
        cluster.asks += 1
        emit = list[Any]().append
        context = WatchContext(self.client, Supervisor(emit), lambda _key: None, emit)
        self._informers = InformerFactory(context, SOURCE_NAME)
        reporter = AttemptReporter(self.client, emit, on_pods=False, on_attempt_end=lambda *_: None)
        hosts_with = ImageLocator(self.client).hosts_with
        self._reconciler = StepReconciler(
            self.client, self._informers, CONFIG, hosts_with, reporter, Redactor(), PullSettings()
        )
        self.job = job

    @property
    def job(self) -> Job:
        return self._state.job

    @job.setter
    def job(self, job: Job) -> None:
        """The spec has been read."""
        self.cluster.asks += job.spec_hash != self._state.job.spec_hash
        self._state.replace_job(job)
        self._state.rendered = Rendered(CONFIG, SECRETS)

    def crash(self) -> "Engine":
        """The same engine, started again; it has yet to read the records and the pods."""
        return Engine(self.cluster, self.job)

    def step(self) -> Result | None:
        """Boot, or take one action; None as long as there is more to do now, or after a failure."""
        if self._booting:
            self._boot()
            return None
        self.client.actions, self.refused = 1, ""
        try:
            return self._reconciler.reconcile(self._state)
        except OwnershipError as error:
            self.refused = error.cause
            return Result()
        except (AdmissionRefusedError, ForbiddenError, QuotaExceededError):
            return Result()
        except (UnreachableError, InterruptedBeforeActionError):
            return None
        finally:
            self.client.fault = ""

    def work(self, steps: int = MOST_STEPS) -> Result | None:
        """Step until there is nothing to do now."""
        for _ in range(steps):
            if (result := self.step()) is not None:
                return result
        assert steps < MOST_STEPS, f"does not settle: {self._state}"
        return None

    @property
    def unrecorded(self) -> list[Pod]:
        """Gated pods that this engine made, that nobody has given up, and that are in no record."""
        record, made = self.cluster.record, self._state.observed.created
        known, version = (record.pods, record.version) if record else ({}, "")
        return [
            pod
            for pod in self.cluster.pods.values()
            if made.get(uid_of(pod)) == version
            and uid_of(pod) not in known
            and gate_position(pod) is not None
        ]

    def hear(self, count: int) -> None:
        """The watch delivers the next `count` events."""
        if self._booting:
            return
        pods = self._informers.pods(NAMESPACE)
        for kind, pod in self.cluster.log[self._position : self._position + count]:
            pods._on_event(kind, copy.deepcopy(pod))
            self._position += 1

    def hear_record(self) -> None:
        """The watch of records delivers the one that there is."""
        self._state.record = self.cluster.record

    def _boot(self) -> None:
        """Records first, then pods, and something may happen in between."""
        self._booting -= 1
        if self._booting:
            self._state.record = read_record(self.client, self.job.key)
            return
        self._informers._add(NAMESPACE)
        self._informers.pods(NAMESPACE).list()
        self._position = len(self.cluster.log)
