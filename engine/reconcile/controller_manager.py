"""An engine that stays: what its manager runs, and how the parts know each other."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.api.model import Config
from engine.cluster.client import Client
from engine.cluster.server import check_server_version
from engine.reconcile.controller import ControllerDependencies, JobController
from engine.reconcile.removed_jobs import RemovedJobs
from engine.reconcile.spec_sync import SpecSync
from engine.reconcile.ttl_controller import TtlController
from engine.render.templates import Templates
from engine.runtime.leader_election import LeaderElector
from engine.runtime.lease_lock import LeaseLock
from engine.runtime.manager import Manager, Runnable
from engine.runtime.retry import retry_transient
from engine.specdir.source import DirectorySource


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """What an engine that stays is asked to do. Times are seconds."""

    source: str
    namespace: str
    """Where the source's Lease is kept, and records are looked for without a right to all."""
    identity: str
    concurrency: int = 16
    prune: bool = False
    """Whether jobs whose spec is gone are removed."""
    allow_empty: bool = False
    """Whether that may be all of them."""
    prune_interval: float = 60.0
    leader_elect: bool = False
    """Whether to stand by while another engine leads, rather than to end."""
    lease_duration: float = 15.0
    max_starts: int | None = None
    """How many new runs one reading of the specs may begin; None: as `limits.maxStarts` says."""
    logs_dir: Path | None = None
    """Where the logs of pods are saved before the TTL rule, or --prune, deletes them."""


class ControllerManager:
    """Runs one source's jobs until it is stopped.

    Guarantees: after `stop` nothing new is begun, what is half-way is brought to the next safe
    point, and the Lease is released.
    """

    def __init__(
        self,
        client: Client,
        source: DirectorySource,
        config: Config,
        templates: Callable[[], Templates],
        options: ManagerOptions,
        dependencies: ControllerDependencies,
    ) -> None:
        self._client = client
        self.controller = controller = JobController(
            client, options.source, options.concurrency, dependencies, max_starts=options.max_starts
        )
        controller.configure(config, templates())
        controller.queue.pause()
        lock = LeaseLock(
            client, options.namespace, options.source, options.identity, options.lease_duration
        )
        self.elector = controller.elector = LeaderElector(
            lock,
            wait=options.leader_elect,
            emit=dependencies.emit,
            on_change=controller.on_leadership,
        )
        logs_dir = options.logs_dir
        removed_jobs = None
        if options.prune:
            removed_jobs = RemovedJobs(controller, options.prune_interval, logs_dir)
        self.specs = SpecSync(
            source,
            controller,
            templates,
            namespace=options.namespace,
            removed_jobs=removed_jobs,
            allow_empty=options.allow_empty,
            wait_for=None if options.leader_elect else self.elector,
        )
        ttl = TtlController(
            controller,
            self.elector,
            None if options.prune else self.specs,
            options.prune_interval,
            options.concurrency,
            logs_dir,
        )
        runnables: list[Runnable] = [self.elector, controller, ttl]
        if removed_jobs is not None:
            runnables.append(removed_jobs)
        runnables.append(self.specs)
        self._manager = Manager(
            self._check_server, runnables, controller.supervisor, dependencies.emit
        )

    def run(self) -> None:
        """Returns once `stop` was called.

        Errors: ClusterError when the cluster is too old or can't be reached at the start,
        LeaseHeldError when another engine leads this source; later ones are reported, and it goes
        on.
        """
        self._manager.run()

    def stop(self, reason: str) -> None:
        """End in order. May be called from a signal handler."""
        self._manager.stop(reason)

    def reload(self) -> None:
        """Read configuration, templates and every spec again. May be called as `stop` may."""
        self.specs.reload()

    def liveness(self) -> str:
        """Why the process should be started again; "" while every thread of it works."""
        return self.controller.supervisor.liveness()

    def readiness(self) -> dict[str, str]:
        """What makes the engine ready, each with the reason why it isn't so, "" if it is."""
        (lost, _), unread = self.controller.unheard, self.controller.caches.unread
        return {
            "caches": lost or (f"not read yet: {unread}" if unread else ""),
            "directory": self.specs.unreadable,
            "leader": self.elector.unknown_leader,
        }

    def remarks(self) -> dict[str, str]:
        """What is not as it should be although the engine is ready."""
        _, refused = self.controller.unheard
        return {
            "namespaces": refused,
            "records": self.controller.unrecorded,
            "starts": self.controller.brake.remark,
        }

    def _check_server(self) -> None:
        check = partial(check_server_version, self._client)
        retry_transient(check, self.controller.on_watch_error)
