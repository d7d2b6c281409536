"""`engine reconcile`: make the specs happen, once or from now on; and what both ways share."""

import resource
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from engine.api.model import Config, Job
from engine.cli import options
from engine.cli.loading import load_settings, load_valid_specs
from engine.cli.output import echo_diagnostic, echo_note, echo_stderr
from engine.cli.printers.events import JsonPrinter, open_printer
from engine.cluster.discovery import check_server_version
from engine.errors import EngineError, InvalidInputError, UsageError, in_order
from engine.lifecycle.object_status import Refusals
from engine.prune.source import find_gone
from engine.reconcile.once import OnceRequest
from engine.reconcile.options import RunOptions
from engine.render.templates import Templates
from engine.runtime.retry import retry_transient
from engine.specdir.active import ActiveSpecs
from engine.specdir.load import with_namespace
from engine.specdir.options import STDIN, SpecOptions
from engine.telemetry.events import ErrorReported, Notice, SpecProblem
from engine.telemetry.redact import REDACTOR

if TYPE_CHECKING:
    from engine.cluster.client import Client
    from engine.cluster.connect import Connection

_OF_PIPELINES = ("timeout", "queue_timeout", "wait", "junit", "rerun_failed", "cancel_on_exit")
_ONLY_WITH_ONCE = (*_OF_PIPELINES, "output")
_OF_LEASES = ("leader_elect", "lease_duration", "lease_namespace")
_NOT_WITH_ONCE = ("prune_interval", "poll", *_OF_LEASES, "metrics_address")
_NOT_IN_A_DRY_RUN = (*_OF_PIPELINES, "logs_dir")


class ReconcileOptions(RunOptions, frozen=True, kw_only=True):
    """A field for each option of the command line.

    Fields with a default are those that `engine diff` has no option for.
    """

    dry_run: str
    output: str
    verbose: int
    sandbox: bool = False
    logs_dir: Path | None = None
    junit: Path | None = None
    metrics_address: str = ""
    log_format: str = "text"


@options.verb(
    "engine reconcile --once jobs",
    "engine reconcile --once jobs --timeout 30m --junit report.xml",
    "engine reconcile jobs --source web --dry-run=server",
    "engine reconcile jobs --source web --leader-elect --metrics-address :8080",
    params=(
        *options.PATHS,
        options.flag("--once", "Run every job to completion, then stop."),
        *options.RECONCILING,
        options.CONCURRENCY("How many jobs are worked on at once.", default=16),
        options.DURATION("--timeout", "Longest time to wait for all jobs; exit code 3."),
        options.DURATION(
            "--queue-timeout",
            "Longest time to wait for room in a quota; exit code 5.",
            default="10m",
        ),
        options.option(
            "--wait",
            "What to wait for: the jobs' end, or their start.",
            type=click.Choice(["finished", "applied"]),
            default="finished",
        ),
        options.flag(
            "--rerun-failed",
            "Run jobs again that had failed, or were cancelled, before this command began.",
        ),
        options.flag(
            "--cancel-on-exit",
            "Cancel what this command has started if it is interrupted, terminated, or out of"
            " --timeout.",
        ),
        options.PRUNE,
        options.MAX_REMOVALS,
        options.YES,
        options.COUNT(
            "--max-starts",
            "Begin no new run if there would be more than this; default: limits.maxStarts.",
        ),
        options.DRY_RUN(
            "Say what would be done, and why, and do nothing; server: ask the server, too."
        ),
        options.ALLOW_EMPTY,
        options.flag("--sandbox", "Use a simulated cluster in this process; runs no container."),
        options.option(
            "--logs-dir",
            "Save the log of each attempt at its end, as DIR/namespace/pod/container.log.",
            writes=True,
            type=click.Path(path_type=Path, file_okay=False),
        ),
        options.output("table", "json"),
        options.option(
            "--junit",
            "Write the result as JUnit XML, too, however it ends.",
            writes=True,
            type=click.Path(path_type=Path, dir_okay=False, writable=True),
            metavar="FILE",
        ),
        options.DURATION(
            "--prune-interval", "How often expired pods are looked for.", default="1m"
        ),
        options.DURATION(
            "--poll",
            "Look for changed files this often instead of using inotify: for network folders.",
        ),
        options.flag("--leader-elect", "Share the jobs with other engines of this source."),
        options.DURATION(
            "--lease-duration",
            "How long jobs are kept without a sign of life; an hour at most.",
            default="15s",
        ),
        options.option(
            "--lease-namespace",
            "Where the Lease is kept; default: as for specs that name no namespace.",
            default="",
            type=options.namespace,
        ),
        options.option(
            "--metrics-address",
            "Serve /metrics, /healthz and /readyz at HOST:PORT, :PORT or, on loopback, PORT.",
            default="",
        ),
        options.option(
            "--log-format",
            "Format of the log on stderr.",
            type=click.Choice(["text", "json"]),
            default="text",
        ),
        options.VERBOSE,
    ),
)
def command(once: bool, **given: Any) -> None:
    """Run the jobs of a folder to completion.

    Every job whose spec has not run yet is started; then the files are watched, unless --once.
    A job that is over stays over: run the same specs again and nothing changes. On Ctrl-C and
    SIGTERM the jobs that have started go on, unless --cancel-on-exit; the next reconcile takes them
    up. SIGHUP reads configuration, templates and specs again.
    """
    asked = ReconcileOptions(**given)
    is_dry = asked.dry_run != "none"
    _refuse_what_has_no_effect(once=once or is_dry, is_dry=is_dry)
    if asked.prune:
        options.require_whole_source(asked.paths)
    if STDIN in asked.paths and not (once or is_dry):
        raise click.UsageError("- is read once: it needs --once or --dry-run")
    # Each way of running has imports of its own, and `--help` needs none of them.
    try:
        if is_dry:
            from engine.cli.reconcile.dry_run import print_plan  # noqa: PLC0415

            print_plan(asked)
        elif once:
            from engine.cli.reconcile.once import run_once  # noqa: PLC0415

            run_once(asked)
        else:
            from engine.cli.reconcile.stay import run_manager  # noqa: PLC0415

            run_manager(asked)
    except EngineError as error:
        if asked.log_format != "json":
            raise
        problems = error.problems if isinstance(error, InvalidInputError) else ()
        with open_printer(asked.verbose, asked.log_format) as emit:
            for problem in problems:
                emit(SpecProblem(problem))
            if not problems:
                emit(ErrorReported(None, str(error), retrying=False))
        sys.exit(error.exit_code)


command.groups = {
    "Options of --once": _OF_PIPELINES,
    "Options of an engine that stays": _NOT_WITH_ONCE,
}


def _refuse_what_has_no_effect(*, once: bool, is_dry: bool) -> None:
    """Errors: UsageError for an option that was given and belongs to the other way of running."""
    context = click.get_current_context()
    refused = dict.fromkeys(_NOT_WITH_ONCE, "has no effect with --once")
    if not once:
        refused = dict.fromkeys(_ONLY_WITH_ONCE, "needs --once")
    elif is_dry:
        refused |= dict.fromkeys(_NOT_IN_A_DRY_RUN, "has no effect with --dry-run")
    if not context.params["prune"]:
        refused |= dict.fromkeys(("max_removals", "yes"), "needs --prune")
    for name, words in refused.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} {words}")


def make_request(asked: ReconcileOptions) -> OnceRequest:
    """Every job of the source, and its cluster, for `--once` and its dry run.

    Errors: InvalidInputError; UsageError if there are no specs, or if --prune may remove jobs by
    mistake; those of `open_connection`.
    """
    settings = load_settings(asked)
    templates = Templates(asked.templates, settings.kubernetes)
    if asked.from_cluster:
        connection = open_connection(asked, (), asked.concurrency + 4)
        asked = replace(asked, context_namespace=connection.namespace)
        objects = _read_objects(asked, connection.client, settings)
        return OnceRequest(connection.client, *objects, settings, templates, asked)
    loaded = load_valid_specs(asked, settings)
    if asked.prune and not loaded.complete:
        words = "--prune would remove the jobs behind a link that is not followed"
        raise UsageError(words, hint="name it on the command line, too, or remove it")
    connection = open_connection(asked, loaded.jobs, asked.concurrency + 4)
    jobs = with_namespace(loaded.jobs, connection.namespace, settings.limits)
    gone = None
    if asked.prune:
        retry_transient(partial(check_server_version, connection.client))
        named = {connection.namespace, asked.namespace, *(job.namespace for job in jobs)}
        living = {job.key for job in jobs}
        gone = find_gone(connection.client, asked.source, living, sorted(named - {""}))
    is_whole = loaded.complete and asked.reads_own_folders
    return OnceRequest(
        connection.client, jobs, {}, settings, templates, asked, is_whole=is_whole, gone=gone
    )


def _read_objects(
    asked: ReconcileOptions, client: "Client", settings: Config
) -> tuple[tuple[Job, ...], Refusals]:
    """Jobs of JobSpec objects, and those that make none: one that is invalid stops no other."""
    from engine.reconcile.object_source import files_of, list_objects, refusals  # noqa: PLC0415

    retry_transient(partial(check_server_version, client))
    found = list_objects(client, asked.objects, asked.selector)
    active = ActiveSpecs(SpecOptions(templates=asked.templates))
    active.update(files_of(found, settings.kubernetes), settings)
    for problem in in_order(active.problems):
        echo_diagnostic(problem, err=True)
    refused = refusals(found, active.problems, active.jobs)
    jobs = tuple(active.jobs.values())
    if not (jobs or refused or asked.allow_empty):
        raise UsageError("no JobSpec objects found", hint="--allow-empty, if that is meant")
    return jobs, refused


def open_connection(asked: ReconcileOptions, jobs: Iterable[Job], connections: int) -> "Connection":
    """To the cluster, or to a sandbox for `jobs` that lives until the command ends.

    Open files are limited by the hard limit alone, as in programs in Go: each namespace is watched
    over its own connections, and the soft limit is meant for programs that use select().
    Errors: those of `connect`.
    """

    def on_silence(words: str) -> None:  # the printer of events is not there yet
        if asked.log_format == "json":
            JsonPrinter(sys.stderr, REDACTOR)(Notice(words))
        else:
            echo_note(words)

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if asked.sandbox:
        context = click.get_current_context()
        context.obj = context.with_resource(_sandbox_kubeconfig(jobs)), ""
    return options.connect(connections, on_silence)


@contextmanager
def _sandbox_kubeconfig(jobs: Iterable[Job]) -> Iterator[str]:
    """Path of the kubeconfig of a sandbox that has every namespace of `jobs`."""
    from engine.sandbox import Sandbox  # noqa: PLC0415 - only who asks for it pays for it

    with tempfile.TemporaryDirectory(prefix="engine-sandbox-") as folder, Sandbox() as running:
        for job in jobs:
            running.namespace(job.namespace or "default")
        echo_stderr("note: this is a simulated cluster; no container is run")
        yield str(running.write_kubeconfig(Path(folder, "kubeconfig")))
