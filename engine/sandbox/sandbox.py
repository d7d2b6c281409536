"""The sandbox as one object: start it, point a client at it, say what should go wrong."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from engine.api.versions import CUSTOM_RESOURCES, read_schema
from engine.sandbox import kinds
from engine.sandbox import kubeconfig as kubeconfigs
from engine.sandbox.api.access import ADMIN, Access, Denial
from engine.sandbox.api.api_server import ApiServer
from engine.sandbox.api.handlers import Handlers
from engine.sandbox.clock import Clock
from engine.sandbox.context import Context, Options
from engine.sandbox.controllers import (
    CustomResourceController,
    GarbageCollector,
    NamespaceContentController,
    NamespaceController,
)
from engine.sandbox.errors import SandboxError, expired
from engine.sandbox.faults import Faults
from engine.sandbox.http_server import HttpServer
from engine.sandbox.node.node import Node
from engine.sandbox.node.scheduler import Scheduler
from engine.sandbox.node.subresources import PodSubresources
from engine.sandbox.request_log import RequestLog
from engine.sandbox.scenario import Scenario, load_scenario
from engine.sandbox.verbs.create import create
from engine.sandbox.verbs.update import update
from engine.sandbox.verbs.watch import WatchHub

if TYPE_CHECKING:
    from types import TracebackType

    from engine.sandbox.node.images import Images
    from engine.sandbox.values import Obj

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_ITSELF = Options(manager="sandbox")


class Sandbox:
    """A Kubernetes API on loopback with a simulated node; no container is ever run.

    Guarantees: the server stays up whatever a client sends; ``stop`` ends every thread it started.
    Errors: SandboxError for a port in use, a malformed scenario, an unreadable version.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        version: str = "1.36",
        scenario: Scenario | str | Path | None = None,
        port: int = 0,
        seed: int = 0,
        bookmark_every: float = 60.0,
    ) -> None:
        self.clock = clock or Clock()
        self.context = Context(self.clock, _minor(version), seed)
        plan = load_scenario(scenario) if isinstance(scenario, (str, Path)) else scenario
        plan = plan or Scenario()
        self.faults = Faults(seed)
        self.access = Access()
        self.requests = RequestLog()
        self._port = port
        self._url = ""
        self._hub = WatchHub(self.context, bookmark_every)
        GarbageCollector(self.context)
        NamespaceController(self.context)
        CustomResourceController(self.context, self._hub)
        NamespaceContentController(self.context)
        Scheduler(self.context)
        self._plan = plan
        self.node = Node(self.context, plan)
        self._nodes = [self.node]
        for name in (*_NAMESPACES, *plan.namespaces):
            self.namespace(name)
        handlers = Handlers(self.context, self._hub, PodSubresources(self.context, self._nodes))
        service = ApiServer(self.context, handlers, self.access, self.faults, self.requests)
        for made in copy.deepcopy(read_schema(CUSTOM_RESOURCES)):
            if made["kind"] == kinds.CRDS.kind:
                create(self.context, kinds.CRDS, "", made, _ITSELF)
        self._http = HttpServer(service.handle, self._date)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> Sandbox:
        """Serve, and let time pass."""
        self._url = f"http://127.0.0.1:{self._http.start(self._port)}"
        self.clock.start()
        return self

    def stop(self) -> None:
        """End connections, watches and timers."""
        self._hub.close()
        self._http.stop()
        self.clock.stop()

    @property
    def url(self) -> str:
        """Where it serves."""
        return self._url

    @property
    def images(self) -> Images:
        """Registries, and what the node has of them."""
        return self.node.images

    @property
    def open_watches(self) -> int:
        """How many watches are open."""
        return self._hub.open

    def kubeconfig(self, user: str = ADMIN, namespace: str = "default") -> Obj:
        """A kubeconfig for this user."""
        return kubeconfigs.kubeconfig(self._url, user, namespace)

    def write_kubeconfig(
        self, path: str | Path, user: str = ADMIN, namespace: str = "default"
    ) -> Path:
        """Write it to a file that only its owner may read."""
        return kubeconfigs.write_kubeconfig(path, self.kubeconfig(user, namespace))

    def namespace(self, name: str) -> None:
        """Make sure that a namespace exists."""
        if self.context.storage.get(kinds.NAMESPACES, "", name) is None:
            body: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            create(self.context, kinds.NAMESPACES, "", body, _ITSELF)

    def add_node(self, name: str) -> Node:
        """One more node, which has no image yet; a scenario holds for all of them."""
        with self.context.storage.lock:
            self._nodes.append(Node(self.context, self._plan, name, tuple(self._nodes)))
        return self._nodes[-1]

    def quota(
        self, namespace: str, name: str = "quota", *, scopes: list[str] | None = None, **hard: str
    ) -> None:
        """Set or change a ResourceQuota: ``quota("ci", pods="2", **{"requests.cpu": "1"})``."""
        self.namespace(namespace)
        spec: Obj = {"hard": dict(hard)}
        if scopes:
            spec["scopes"] = scopes
        body: Obj = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": name},
            "spec": spec,
        }
        if self.context.storage.get(kinds.QUOTAS, namespace, name) is None:
            create(self.context, kinds.QUOTAS, namespace, body, _ITSELF)
        else:
            where = (self.context, kinds.QUOTAS, namespace, name)
            update(*where, lambda old: {**old.thaw(), "spec": spec}, _ITSELF)

    def deny(
        self, verb: str, resource: str, namespace: str | None = None, user: str | None = None
    ) -> Denial:
        """Forbid something from now on; globs; ``pods/log`` for a subresource."""
        return self.access.deny(verb, resource, namespace, user)

    def allow(self, denial: Denial) -> None:
        """Take a denial back."""
        self.access.allow(denial)

    def drop_watches(self, resource: str | None = None) -> None:
        """Cut the open watches off without a word."""
        self._hub.close(resource)

    def expire_watches(self, resource: str | None = None) -> None:
        """Compact, and end the open watches with 410 Expired."""
        self.compact(resource)
        rv = self.context.storage.rv
        self._hub.close(resource, expired(f"too old resource version: 1 ({rv})").status())

    def compact(self, resource: str | None = None) -> None:
        """Forget old versions: a watch or page of one gets 410 Expired."""
        self.context.storage.compact(kinds.BY_NAME[resource] if resource else None)

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        """An object as it is stored now, without a request; a copy."""
        entry = self.context.storage.get(kinds.BY_NAME[resource], namespace, name)
        return entry.thaw() if entry else None

    def objects(self, resource: str, namespace: str | None = None) -> list[Obj]:
        """All objects of a resource, without a request; copies."""
        with self.context.storage.lock:
            entries = self.context.storage.entries(kinds.BY_NAME[resource], namespace)
        return [entry.thaw() for entry in entries]

    def restore(self, obj: Obj) -> None:
        """Store an object as it was stored elsewhere, UID, times and status included.

        As with a backup, nothing is checked or filled in: owners come first. A pod of another node
        stays as it is until its next write.
        """
        kind = kinds.BY_KIND[obj["apiVersion"], obj["kind"]]
        self.context.storage.put(kind, copy.deepcopy(obj))

    def _date(self) -> str:
        return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self.clock.now()))


def _minor(version: str) -> int:
    """The minor version in ``1.36``. Errors: SandboxError."""
    major, _, minor = version.removeprefix("v").partition(".")
    if major != "1" or not minor.isdigit():
        raise SandboxError(f"unknown version {version!r}", hint="such as 1.36")
    return int(minor)
