"""binding, eviction and log: the parts of a Pod's API that need the node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.errors import bad_request, conflict, field_required, invalid, not_found
from engine.sandbox.node import logs
from engine.sandbox.node.scheduler import bind
from engine.sandbox.verbs.delete import DeleteOptions, check_preconditions, delete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.context import Context
    from engine.sandbox.node.node import Node
    from engine.sandbox.store import Entry
    from engine.sandbox.values import Obj


class PodSubresources:
    """binding, eviction and log: the parts of the API that need the node."""

    def __init__(self, context: Context, nodes: list[Node]) -> None:
        """`nodes` may grow."""
        self._context = context
        self._nodes = nodes

    def bind(self, namespace: str, name: str, body: Obj) -> None:
        """Errors: 404; 409 bound already; 400 gated or no target."""
        with self._context.storage.lock:
            pod = self._pod(namespace, name)
            if pod.obj["spec"].get("schedulingGates"):
                raise bad_request(f"pod {name} has non-empty .spec.schedulingGates")
            if pod.obj["spec"].get("nodeName"):
                why = f'pod {name} is already assigned to node "{pod.obj["spec"]["nodeName"]}"'
                raise conflict("", "pods/binding", name, why)
            target = (body.get("target") or {}).get("name")
            if not target:
                raise invalid("", "Binding", name, [field_required("target.name")])
            bind(self._context, pod, target)

    def evict(self, namespace: str, name: str, body: Obj) -> None:
        """An eviction through the API: the Pod is deleted with its grace."""
        options = body.get("deleteOptions") or {}
        held = options.get("preconditions") or {}
        if (body.get("metadata") or {}).get("name", name) != name:
            raise bad_request("name in URL does not match name in Eviction object")
        with self._context.storage.lock:
            pod = self._pod(namespace, name)
            wanted = DeleteOptions(
                grace=options.get("gracePeriodSeconds"),
                uid=held.get("uid") or "",
                resource_version=held.get("resourceVersion") or "",
                dry_run=bool(options.get("dryRun")),
            )
            check_preconditions(kinds.PODS, pod, wanted)
            if wanted.dry_run:
                return
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
                "lastProbeTime": None,
                "lastTransitionTime": self._context.clock.stamp(),
            }
            status = dict(pod.obj["status"])
            others = [c for c in status.get("conditions", ()) if c["type"] != condition["type"]]
            status["conditions"] = [*others, condition]
            meta = dict(pod.obj["metadata"])
            self._context.storage.put(kinds.PODS, {**pod.obj, "metadata": meta, "status": status})
            unheld = replace(wanted, resource_version="")
            delete(self._context, kinds.PODS, namespace, name, unheld)

    def logs(self, pod: Entry, query: dict[str, str]) -> Iterator[bytes]:
        """Errors: 400 an unknown container, or one that has never run."""
        name = logs.choose_container(pod, query.get("container", ""))
        worker = next(filter(None, (node.worker_of(pod) for node in self._nodes)), None)
        if worker is None:
            return iter(())
        container = next(c for c in worker.state.all if c.name == name)
        logs.check_started(pod, container)
        now = self._context.clock.now()
        return logs.stream(container, query, lambda: worker.state.closed or worker.state.ended, now)

    def _pod(self, namespace: str, name: str) -> Entry:
        pod = self._context.storage.get(kinds.PODS, namespace, name)
        if pod is None:
            raise not_found("", "pods", name)
        return pod
