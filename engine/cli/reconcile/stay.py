"""`engine reconcile DIR` without --once: from options to an engine that stays, and its signals."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from msgspec.structs import replace

from engine.api.model import Job
from engine.cli.loading import load_settings
from engine.cli.main import on_ending_signals
from engine.cli.printers.events import open_printer
from engine.cli.reconcile import ReconcileOptions, open_connection
from engine.cluster.client import Client
from engine.cluster.logs import LogArchive
from engine.errors import ExitCode, UsageError
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.controller_manager import ControllerManager
from engine.render.templates import Templates
from engine.runtime.lease import MAX_DURATION
from engine.specdir.load import load_specs
from engine.specdir.scan import require_paths
from engine.specdir.source import DirectorySource
from engine.telemetry.events import Event, Notice
from engine.telemetry.health import HealthServer
from engine.telemetry.metrics import Metrics
from engine.telemetry.redact import REDACTOR

_CONNECTIONS = 256
_OBJECTS_BETWEEN_COLLECTIONS = 5_000
"""Fewer than elsewhere: errors leave cycles, which a process that stays would pile up."""


def run_manager(options: ReconcileOptions) -> None:
    """Run until a signal comes, and leave with the exit code of that signal.

    Errors: those of `ControllerManager.run`; UsageError for a missing path or an address that
    can't be listened on, InvalidInputError for a broken configuration.
    """
    if options.lease_duration > MAX_DURATION:
        raise UsageError("an hour at most", where="--lease-duration")
    require_paths(options.paths)
    if options.from_cluster and options.poll:
        raise UsageError("it is for folders, and --from-cluster has none", where="--poll")
    settings = load_settings(options)
    jobs: tuple[Job, ...] = ()
    if options.sandbox:
        jobs = load_specs(options, settings).jobs
    connection = open_connection(options, jobs, _CONNECTIONS)
    options = replace(options, context_namespace=connection.namespace)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    printer_of = open_printer(options.verbose, options.log_format)
    with printer_of as printer, ExitStack() as stack:
        metrics = Metrics()

        def emit(event: Event) -> None:
            metrics(event)  # first: who reads the line finds it counted
            printer(event)

        dependencies = ControllerDependencies(
            os.environ,
            REDACTOR,
            emit,
            on_reconcile=metrics.observe_reconcile,
            on_queue_latency=metrics.queue_wait.observe,
            logs=LogArchive(options.logs_dir, REDACTOR) if options.logs_dir else None,
        )
        source = DirectorySource(
            options, settings, lambda message: emit(Notice(message)), options.poll
        )
        templates = partial(Templates, options.templates, settings.kubernetes)
        manager = ControllerManager(
            connection.client, source, settings, templates, options, dependencies
        )
        if address := options.metrics_address:
            url = stack.enter_context(_serve(address, manager, metrics, connection.client))
            emit(Notice(f"metrics and probes are served at {url}"))
        received = on_ending_signals(
            lambda number: manager.stop(signal.Signals(number).name), printer.close
        )
        signal.signal(signal.SIGHUP, lambda *_: manager.reload())
        manager.run()
    _exit(ExitCode.INTERRUPTED if signal.SIGINT in received else ExitCode.OK)


def _exit(code: ExitCode) -> None:
    """End the process, even while a thread waits for a server that is away."""
    sys.stdout.flush()
    sys.stderr.flush()
    here = threading.current_thread()
    if any(not thread.daemon and thread is not here for thread in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


@contextmanager
def _serve(
    address: str, manager: ControllerManager, metrics: Metrics, client: Client
) -> Iterator[str]:
    """Metrics and probes over HTTP; yields their URL."""
    controller = manager.controller
    metrics.bind(
        {
            "engine_quota_waiting_jobs": lambda: len(controller.quota_queue),
            "engine_held_jobs": lambda: len(controller.start_limiter.suspended),
            "engine_spec_problems": lambda: manager.specs.problems,
            "engine_workqueue_depth": lambda: len(controller.queue),
            "engine_workqueue_adds": lambda: controller.queue.adds,
            "engine_workqueue_retries": lambda: controller.retries,
            "engine_internal_errors": lambda: controller.supervisor.panics,
            "engine_api_requests": lambda: client.requests,
            "engine_watch_restarts": lambda: sum(w.restarts for w in controller.reflectors()),
        }
    )
    server = HealthServer(address, manager.readiness, controller.supervisor.liveness, metrics)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()
