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

import click

from engine.api.model import Config
from engine.cli.loading import load_config
from engine.cli.reconciling.asked import Asked
from engine.cli.reconciling.common import sandbox_for, shown
from engine.cluster.connect import Connection, connect
from engine.errors import ExitCode
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.controller_manager import ControllerManager, ManagerOptions
from engine.render.templates import Templates
from engine.runtime.leader_election import default_identity
from engine.specdir.load import load_specs
from engine.specdir.scan import require_paths
from engine.specdir.source import DirectorySource
from engine.telemetry.events import Emit, Event, Notice
from engine.telemetry.redact import REDACTOR
from engine.telemetry.states import StateCounts

if TYPE_CHECKING:
    from engine.telemetry.metrics import Metrics

_CONNECTIONS = 256
_OBJECTS_BETWEEN_COLLECTIONS = 5_000
"""Fewer than elsewhere: errors do leave cycles, and a process that stays must not pile them up."""


def stay(asked: Asked) -> None:
    """Run until a signal comes, and leave with the exit code that tells which one.

    Errors: those of `Manager.run`; UsageError for a path that isn't there or an address that
    can't be listened on, InvalidInputError for a broken configuration.
    """
    require_paths(asked.paths)
    settings = load_config(asked.config, asked.kubernetes_schema)
    kubeconfig, context = asked.kubeconfig, asked.context
    if asked.sandbox:
        jobs = load_specs(asked.paths, settings, asked.namespace).jobs
        kubeconfig, context = click.get_current_context().with_resource(sandbox_for(jobs)), ""
    connection = connect(kubeconfig, context, connections=_CONNECTIONS)
    show = shown(asked)
    listeners: list[Emit] = [show]

    def emit(event: Event) -> None:
        for listener in listeners:
            listener(event)

    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    metrics = _metrics() if asked.metrics_address else None
    manager = _manager(asked, settings, connection, emit, metrics)
    try:
        with _signals(manager) as ended_by, _served(asked, manager, connection, metrics, listeners):
            manager.run()
    finally:
        show.close()
    _leave(ExitCode.INTERRUPTED if signal.SIGINT in ended_by else ExitCode.OK)


def _leave(code: ExitCode) -> None:
    """End the process; a thread that waits for a server that is away doesn't delay it."""
    sys.stdout.flush()
    sys.stderr.flush()
    here = threading.current_thread()
    if any(not thread.daemon and thread is not here for thread in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


def _manager(
    asked: Asked,
    settings: Config,
    connection: Connection,
    emit: Emit,
    metrics: "Metrics | None",
) -> ControllerManager:
    source = DirectorySource(
        asked.paths,
        config_file=asked.config,
        config=settings,
        namespace=asked.namespace,
        context_namespace=connection.namespace,
        poll=asked.poll,
        on_notice=lambda message: emit(Notice(message)),
    )
    options = ManagerOptions(
        source=asked.source,
        namespace=asked.namespace or connection.namespace,
        identity=default_identity(),
        concurrency=asked.concurrency,
        prune=asked.prune,
        allow_empty=asked.allow_empty,
        prune_interval=asked.prune_interval,
        leader_elect=asked.leader_elect,
        lease_duration=asked.lease_duration,
    )
    dependencies = ControllerDependencies(os.environ, REDACTOR, emit)
    if metrics is not None:
        dependencies = replace(
            dependencies,
            on_reconcile=metrics.observe_reconcile,
            on_queue_latency=metrics.observe_queue_wait,
        )

    def templates() -> Templates:
        return Templates(asked.templates, settings.kubernetes)

    return ControllerManager(connection.client, source, settings, templates, options, dependencies)


def _metrics() -> "Metrics":
    from engine.telemetry.metrics import Metrics  # noqa: PLC0415 - only who serves them pays

    return Metrics()


@contextmanager
def _served(
    asked: Asked,
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
            spec_problems=lambda: manager.specs.problems,
            queue_depth=lambda: len(controller.queue),
            queue_adds=lambda: controller.queue.adds,
            internal_errors=lambda: controller.supervisor.panics,
            queue_retries=lambda: controller.rate_limiter.retries_total,
            api_requests=lambda: connection.client.requests,
            watch_restarts=lambda: sum(watch.restarts for watch in controller.reflectors()),
        )
    )
    server = HealthServer(
        asked.metrics_address,
        manager.readiness,
        manager.liveness,
        metrics,
    )
    server.start()
    for listener in listeners:
        listener(Notice(f"metrics and probes are served at {server.url}"))
    try:
        yield
    finally:
        server.stop()


@contextmanager
def _signals(manager: ControllerManager) -> Iterator[set[int]]:
    """SIGTERM and SIGINT end the manager, a second one at once; SIGHUP reads all again."""
    ended_by: set[int] = set()

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        if ended_by:
            os._exit(ExitCode.INTERRUPTED)
        ended_by.add(number)
        manager.stop(signal.Signals(number).name)

    def reload(number: int, frame: FrameType | None) -> None:
        del number, frame
        manager.reload()

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, end),
        signal.SIGINT: signal.signal(signal.SIGINT, end),
        signal.SIGHUP: signal.signal(signal.SIGHUP, reload),
    }
    try:
        yield ended_by
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
