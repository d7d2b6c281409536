"""`engine reconcile DIR` without --once: from options to an engine that stays, and its signals."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from engine.api.model import Config, Job
from engine.cli.loading import load_settings
from engine.cli.printers.event_printer import EventPrinter
from engine.cli.reconciling.common import (
    ReconcileOptions,
    end_at_last,
    open_connection,
    open_printer,
)
from engine.cli.signals import ending_signals
from engine.cluster.connect import Connection
from engine.errors import ExitCode
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.controller_manager import ControllerManager, ManagerOptions
from engine.render.templates import Templates
from engine.runtime.leader_election import default_identity
from engine.specdir.load import load_specs
from engine.specdir.scan import require_paths
from engine.specdir.source import DirectorySource
from engine.specdir.uncounted_defaults import require_counted_defaults
from engine.telemetry.events import Emit, Event, Notice
from engine.telemetry.redact import REDACTOR
from engine.telemetry.states import StateCounts

if TYPE_CHECKING:
    from engine.telemetry.metrics import Metrics

_CONNECTIONS = 256
_OBJECTS_BETWEEN_COLLECTIONS = 5_000
"""Fewer than elsewhere: errors do leave cycles, and a process that stays must not pile them up."""


def run_manager(options: ReconcileOptions) -> None:
    """Run until a signal comes, and leave with the exit code that tells which one.

    Errors: those of `Manager.run`; UsageError for a path that isn't there or an address that
    can't be listened on, InvalidInputError for a broken configuration, or JobDefaults that don't
    count any more.
    """
    require_paths(options.paths)
    settings = load_settings(options)
    require_counted_defaults(options.paths, options.defaults_root, settings.kubernetes)
    jobs: tuple[Job, ...] = ()
    if options.sandbox:
        jobs = load_specs(options.paths, settings, options.namespace, options.defaults_root).jobs
    connection = open_connection(options, jobs, _CONNECTIONS)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    metrics = _metrics() if options.metrics_address else None
    with open_printer(options) as printer:
        listeners: list[Emit] = [printer]

        def emit(event: Event) -> None:
            for listener in listeners:
                listener(event)

        manager = _manager(options, settings, connection, emit, metrics)
        health = _serve_health(options, manager, connection, metrics, listeners)
        with _handle_signals(manager, printer) as received, health:
            manager.run()
    _exit(ExitCode.INTERRUPTED if signal.SIGINT in received else ExitCode.OK)


def _exit(code: ExitCode) -> None:
    """End the process; a thread that waits for a server that is away doesn't delay it."""
    sys.stdout.flush()
    sys.stderr.flush()
    here = threading.current_thread()
    if any(not thread.daemon and thread is not here for thread in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


def _manager(
    options: ReconcileOptions,
    settings: Config,
    connection: Connection,
    emit: Emit,
    metrics: "Metrics | None",
) -> ControllerManager:
    source = DirectorySource(
        options.paths,
        config_file=options.config,
        config=settings,
        namespace=options.namespace,
        context_namespace=connection.namespace,
        defaults_root=options.defaults_root,
        poll=options.poll,
        strict=options.strict,
        on_notice=lambda message: emit(Notice(message)),
    )
    manager_options = ManagerOptions(
        source=options.source,
        namespace=options.namespace or connection.namespace,
        identity=default_identity(),
        concurrency=options.concurrency,
        prune=options.prune,
        allow_empty=options.allow_empty,
        prune_interval=options.prune_interval,
        leader_elect=options.leader_elect,
        lease_duration=options.lease_duration,
        max_starts=options.max_starts,
        logs_dir=options.logs_dir,
    )
    dependencies = ControllerDependencies(os.environ, REDACTOR, emit)
    if metrics is not None:
        dependencies = replace(
            dependencies,
            on_reconcile=metrics.observe_reconcile,
            on_queue_latency=metrics.observe_queue_wait,
        )

    def templates() -> Templates:
        return Templates(options.templates, settings.kubernetes)

    return ControllerManager(
        connection.client, source, settings, templates, manager_options, dependencies
    )


def _metrics() -> "Metrics":
    from engine.telemetry.metrics import Metrics  # noqa: PLC0415 - only who serves them pays

    return Metrics()


@contextmanager
def _serve_health(
    options: ReconcileOptions,
    manager: ControllerManager,
    connection: Connection,
    metrics: "Metrics | None",
    listeners: list[Emit],
) -> Iterator[None]:
    """Metrics and probes over HTTP, if they were asked for."""
    if metrics is None:
        yield
        return
    from engine.telemetry.health import HealthServer  # noqa: PLC0415 - as above
    from engine.telemetry.instruments import GaugeSources  # noqa: PLC0415

    states, controller = StateCounts(), manager.controller
    listeners += [metrics, states]
    metrics.bind(
        GaugeSources(
            jobs=states.counts,
            quota_waiting=lambda: len(controller.quota_queue),
            held=lambda: len(controller.brake.held),
            spec_problems=lambda: manager.specs.problems,
            queue_depth=lambda: len(controller.queue),
            queue_adds=lambda: controller.queue.adds,
            internal_errors=lambda: controller.supervisor.panics,
            queue_retries=lambda: controller.failures.rate_limiter.retries_total,
            api_requests=lambda: connection.client.requests,
            watch_restarts=lambda: sum(watch.restarts for watch in controller.reflectors()),
        )
    )
    server = HealthServer(
        options.metrics_address,
        manager.readiness,
        manager.liveness,
        metrics,
        manager.remarks,
    )
    server.start()
    for listener in listeners:
        listener(Notice(f"metrics and probes are served at {server.url}"))
    try:
        yield
    finally:
        server.stop()


@contextmanager
def _handle_signals(manager: ControllerManager, printer: EventPrinter) -> Iterator[set[int]]:
    """SIGTERM and SIGINT end the manager, a second one at once; SIGHUP reads all again."""
    received: set[int] = set()

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        if received:
            printer.close()
            os._exit(ExitCode.INTERRUPTED)
        received.add(number)
        end_at_last()
        manager.stop(signal.Signals(number).name)

    def reload(number: int, frame: FrameType | None) -> None:
        del number, frame
        manager.reload()

    handlers = {**dict.fromkeys(ending_signals(), end), signal.SIGHUP: reload}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
