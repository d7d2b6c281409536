"""The node: a worker for each of its pods, and what a test or a demo can do to it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.errors import not_found
from engine.sandbox.node.images import Images
from engine.sandbox.node.node_object import (
    NODE_NAME,
    node_object,
    outage_tolerated,
    set_images,
    set_ready,
    taint_evicted,
)
from engine.sandbox.node.pod_worker import PodWorker
from engine.sandbox.node.recorder import Recorder
from engine.sandbox.scenario import Rule, Run, Scenario
from engine.sandbox.verbs.delete import DeleteOptions, delete

if TYPE_CHECKING:
    from engine.sandbox.context import Context
    from engine.sandbox.store import Change, Entry
    from engine.sandbox.values import Obj

_ENDED = ("Succeeded", "Failed")


class Node:
    """Simulates one node. Nothing is ever run.

    The nodes that stand `beside` one another share registries and scenario, not what they cache.
    """

    def __init__(
        self,
        context: Context,
        scenario: Scenario,
        name: str = NODE_NAME,
        beside: tuple[Node, ...] = (),
    ) -> None:
        self.context = context
        self.name = name
        self.address = f"192.0.2.{len(beside) + 1}"
        self.images: Images = Images(beside[0].images if beside else None)
        self.recorder = Recorder(context, "kubelet", name)
        self.pull_time = scenario.pull_time
        self._first = beside[0] if beside else self
        self.scenario = scenario
        self._workers: dict[str, PodWorker] = {}
        self._lost = False
        if not beside:
            self._furnish(scenario)
        context.storage.put(kinds.NODES, node_object(context, name, self.address))
        self.images.on_change = self._tell_images
        self._tell_images()
        context.storage.listen(self._on_change)

    def _furnish(self, scenario: Scenario) -> None:
        for plan in scenario.registries:
            held = None if plan.images is None else list(plan.images)
            self.images.registry(plan.host, held, dict(plan.users), plan.outage)
        self.images.cache(*scenario.cached)
        self.images.missing(*scenario.missing)

    def will(
        self,
        run: Run,
        *,
        image: str = "*",
        pod: str = "*",
        container: str = "*",
        namespace: str = "*",
    ) -> None:
        """From now on such containers run so; the latest rule wins."""
        rule, first = Rule(run, image, pod, container, namespace), self._first
        first.scenario = replace(first.scenario, containers=(rule, *first.scenario.containers))

    def evict(self, namespace: str, name: str, message: str = "") -> None:
        """The kubelet evicts a Pod for lack of memory: Failed, reason Evicted."""
        words = message or "The node was low on resource: memory."
        with self.context.clock.paused():
            worker = self._worker(namespace, name)
            self.recorder.record(worker.pod, "Warning", "Evicted", words)
            worker.fail("Evicted", words, "TerminationByKubelet")

    def lose(self) -> None:
        """The node stops reporting; after their tolerated time its pods are to be deleted."""
        with self.context.clock.paused(), self.context.storage.lock:
            self._lost = True
            set_ready(self.context, self._entry(), False)
            for worker in self._workers.values():
                seconds = outage_tolerated(worker.pod)
                if seconds is not None and not worker.state.ended:
                    self.context.clock.call_later(
                        seconds, partial(self._taint_evict, worker.pod.uid)
                    )

    def recover(self) -> None:
        """The node is back: it reports what went on meanwhile, and lets deleted pods go."""
        with self.context.clock.paused(), self.context.storage.lock:
            self._lost = False
            set_ready(self.context, self._entry(), True)
            for worker in list(self._workers.values()):
                worker.state.publish()
                if worker.pod.obj["metadata"].get("deletionTimestamp"):
                    worker.terminate(0)

    def run_of(self, pod: Entry, container: Obj, *, sidecar: bool) -> Run:
        """How a container is to run: the latest rule that covers it."""
        scenario = self._first.scenario
        return scenario.run_of(pod.namespace, pod.name, container, sidecar=sidecar)

    def publish(self, pod: Entry, status: Obj) -> None:
        """Write a Pod's status, unless the node is cut off or nothing has changed."""
        storage = self.context.storage
        with storage.lock:
            current = storage.get(kinds.PODS, *pod.key)
            if self._lost or current is None or current.uid != pod.uid:
                return
            if current.obj.get("status") == status:
                return
            meta = dict(current.obj["metadata"])
            storage.put(kinds.PODS, {**current.obj, "metadata": meta, "status": status})

    def remove(self, pod: Entry) -> None:
        """The Pod's containers are gone; so may its object be."""
        with self.context.storage.lock:
            current = self.context.storage.get(kinds.PODS, *pod.key)
            if current is not None and current.uid == pod.uid and not self._lost:
                delete(self.context, kinds.PODS, *pod.key, DeleteOptions(grace=0, uid=pod.uid))

    def _tell_images(self) -> None:
        with self.context.storage.lock:
            entry = self.context.storage.get(kinds.NODES, "", self.name)
            if entry is not None:
                set_images(self.context, entry, self.images.cached)

    def _on_change(self, change: Change) -> None:
        entry = change.entry
        if entry.kind is not kinds.PODS or entry.obj["spec"].get("nodeName") != self.name:
            return
        worker = self._workers.get(entry.uid)
        if change.type == "DELETED":
            if worker is not None:
                self._workers.pop(entry.uid).close()
        elif worker is None:
            if entry.obj["status"].get("phase") not in _ENDED:
                worker = self._workers[entry.uid] = PodWorker(self, entry)
                self.context.call_soon(worker.begin)
        else:
            before, now = worker.pod.obj["metadata"], entry.obj["metadata"]
            worker.changed(entry)
            if self._lost or (worker.state.ended and "deletionTimestamp" not in now):
                return
            if now.get("deletionTimestamp") != before.get("deletionTimestamp"):
                grace = float(now.get("deletionGracePeriodSeconds", 0))
                self.context.call_soon(lambda: worker.terminate(grace))
            elif now.get("generation") != before.get("generation"):
                self.context.call_soon(worker.state.publish)

    def worker_of(self, pod: Entry) -> PodWorker | None:
        """The worker that runs a Pod; None for one that isn't on this node."""
        return self._workers.get(pod.uid)

    def _taint_evict(self, uid: str) -> None:
        worker = self._workers.get(uid)
        if worker is None or not self._lost:
            return
        with self.context.storage.lock:
            pod = self.context.storage.get(kinds.PODS, *worker.pod.key)
            if pod is not None and pod.uid == uid:
                self.context.storage.put(kinds.PODS, taint_evicted(self.context, pod))
                delete(self.context, kinds.PODS, *pod.key, DeleteOptions(uid=uid))

    def _entry(self) -> Entry:
        entry = self.context.storage.get(kinds.NODES, "", self.name)
        if entry is None:
            raise not_found("", "nodes", self.name)
        return entry

    def _worker(self, namespace: str, name: str) -> PodWorker:
        pod = self.context.storage.get(kinds.PODS, namespace, name)
        worker = self._workers.get(pod.uid) if pod else None
        if worker is None:
            raise not_found("", "pods", name)
        return worker
