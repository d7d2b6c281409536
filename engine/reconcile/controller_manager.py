"""An engine that stays: its runnables, how they know each other, and how they start and end."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

from engine.api.model import Config
from engine.cluster.client import Client
from engine.cluster.discovery import check_server_version
from engine.errors import EngineError
from engine.prune.source import SourcePruner
from engine.reconcile.controller import ControllerDependencies, JobController
from engine.reconcile.object_source import ObjectSource
from engine.reconcile.options import RunOptions
from engine.reconcile.removed_jobs import RemovedJobs
from engine.reconcile.spec_sync import SpecSync
from engine.render.templates import Templates
from engine.runtime.membership import LeaseLock, Membership
from engine.runtime.retry import retry_transient
from engine.runtime.supervisor import SupervisedThread
from engine.specdir.source import DirectorySource
from engine.telemetry.events import ErrorReported, Notice

Run = Callable[[threading.Event, Callable[[float], None]], None]
"""Works until the event is set; calls the other with the seconds within which it does so again."""
_RELEASE_GRACE, _CONTROLLER_GRACE = 3.0, 6.5
_MAX_PASS, _TICK = 600.0, 1.0


class ControllerManager:
    """Runs one source's jobs until it is stopped.

    Guarantees: after `stop` nothing new is begun, a reconcile that is half-way reaches its next
    safe point, and the Lease is released. The runnables are started in order once the server was
    checked, and stopped in the reverse order: each has ended, or had its grace, before the one
    before it is stopped. The thread that calls `run` only waits, so that a signal is answered
    within a second.
    """

    def __init__(
        self,
        client: Client,
        source: DirectorySource,
        config: Config,
        templates: Callable[[], Templates],
        options: RunOptions,
        dependencies: ControllerDependencies,
    ) -> None:
        self.controller = controller = JobController(client, options, dependencies, stays=True)
        if options.objects:
            source.objects = ObjectSource(controller, config.kubernetes)
        controller.configure(config, templates())
        controller.queue.pause(True)
        place = options.lease_namespace or options.home
        lock = LeaseLock(client, place, options.source, options.lease_duration)
        self.membership = controller.membership = Membership(
            lock,
            shares=options.leader_elect,
            emit=dependencies.emit,
            on_change=lambda leads: controller.queue.pause(not leads),
            on_members=controller.on_members,
        )
        self.specs = SpecSync(source, config, controller, templates)
        self._pruner = SourcePruner(
            client=client,
            source=options.source,
            ages=options.reads_own_folders and not options.prune,
            concurrency=options.concurrency,
            leads=lambda: controller.leads,
        )
        self._runnables: list[tuple[str, float, Run]] = [
            ("membership", _RELEASE_GRACE, self.membership.run),
            ("job controller", _CONTROLLER_GRACE, controller.run),
            ("TTL controller", 0.0, self._run_ttl_rule),
        ]
        """Names, the seconds for which the end of each is waited for, and what each does."""
        if options.prune:
            removed = RemovedJobs(controller, self.specs)
            controller.remove = removed.remove
            self._runnables.append(("removed jobs", 0.0, removed.run))
        self._runnables.append(("spec directory", 0.0, self.specs.run))
        self._messages: SimpleQueue[str | EngineError | None] = SimpleQueue()
        """Why to stop, the error of a runnable, or None once the server was checked."""

    def run(self) -> None:
        """Returns once `stop` was called.

        Errors: ClusterError when the cluster is too old or can't be reached at the start,
        OwnershipError when another engine leads this source; later ones are reported, and it goes
        on.
        """
        supervisor = self.controller.supervisor
        running: list[tuple[float, SupervisedThread]] = []
        supervisor.start("start", self._check_server)
        while (message := self._next_message()) is None:
            for name, grace, run in self._runnables:
                running.append((grace, supervisor.start(name, partial(self._run, run))))
        if running or isinstance(message, str):
            self.controller.emit(Notice(str(message), "stopping"))
        for grace, thread in reversed(running):
            thread.stop()
            thread.join(grace)
        if isinstance(message, EngineError):
            raise message

    def _next_message(self) -> str | EngineError | None:
        """Wake up every second: a signal that another thread took is acted on in this one."""
        while True:
            with suppress(Empty):
                return self._messages.get(timeout=_TICK)

    def stop(self, reason: str) -> None:
        """End in order. May be called from a signal handler."""
        self._messages.put(reason)

    def reload(self) -> None:
        """Read configuration, templates and every spec again. May be called as `stop` may."""
        self.specs.reload()

    def readiness(self) -> dict[str, str]:
        """What makes the engine ready, each with the reason why it isn't so, "" if it is."""
        lost, unread = self.controller.unheard, self.controller.informers.unread
        return {
            "caches": lost or (f"not read yet: {unread}" if unread else ""),
            "directory": self.specs.unreadable,
            "leader": self.membership.unheld,
        }

    def _run_ttl_rule(self, stop: threading.Event, heartbeat: Callable[[float], None]) -> None:
        """One pass every interval, whenever this engine leads; one that is half-way ends by itself.

        Errors: none of the cluster's; they are reported.
        """
        interval = self.controller.options.prune_interval
        while not stop.wait(interval):
            heartbeat(_MAX_PASS + interval)
            if not self.controller.leads:
                continue
            controller, is_whole = self.controller, not self.specs.incomplete
            state = controller.source_state(is_whole=is_whole)
            result = self._pruner.prune(controller.config, state)
            for entry in result.entries:
                controller.report_pruned(entry)
            for note in result.notes:
                self.controller.emit(Notice(note))
            for problem in (*result.errors, *result.warnings):
                self.controller.emit(ErrorReported(None, f"pruning: {problem}", retrying=True))

    def _check_server(self, thread: SupervisedThread) -> None:
        del thread
        check = partial(check_server_version, self.controller.client)
        try:
            retry_transient(check, self.controller.on_watch_error)
        except EngineError as error:
            self._messages.put(error)
        else:
            self._messages.put(None)

    def _run(self, run: Run, thread: SupervisedThread) -> None:
        """An EngineError ends the manager; after any other error `run` is called again."""
        try:
            run(thread.stopped, thread.expect)
        except EngineError as error:
            self._messages.put(error)
