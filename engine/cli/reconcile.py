"""`engine reconcile`: make the specs happen."""

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from engine.cli import options
from engine.cli.loading import load_config, valid_jobs
from engine.cli.printers.progress import progress
from engine.cli.printers.result import exit_code, result_json, result_table
from engine.controller.once_result import OnceResult
from engine.errors import UsageError
from engine.render.templates import Templates
from engine.spec.load import placed
from engine.spec.model import Job
from engine.telemetry.redact import KNOWN


@click.command()
@options.paths
@options.option("--once", is_flag=True, help="Bring every job to its end, then stop.")
@options.namespace
@options.cluster
@options.config
@options.templates
@options.source
@options.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="How many jobs are worked on at once.",
)
@options.option(
    "--timeout", type=options.Duration(), help="Longest time to wait for all jobs; exit code 3."
)
@options.option(
    "--queue-timeout",
    type=options.Duration(),
    default=600.0,
    show_default="10m",
    help="Longest time to wait for room in a quota; exit code 5.",
)
@options.option(
    "--wait",
    type=click.Choice(["finished", "applied"]),
    default="finished",
    show_default=True,
    help="What to wait for: the jobs' end, or their start.",
)
@options.option(
    "--prune", is_flag=True, help="Cancel and remove jobs of this source whose spec is gone."
)
@options.option("--allow-empty", is_flag=True, help="Let --prune remove every job of the source.")
@options.option(
    "--sandbox", is_flag=True, help="Use a simulated cluster in this process; runs no container."
)
@options.output("table", "json")
@options.verbose
def command(
    paths: tuple[str, ...],
    filenames: tuple[str, ...],
    once: bool,
    namespace: str,
    kubeconfig: str,
    context: str,
    config: Path | None,
    templates: Path | None,
    source: str,
    concurrency: int,
    timeout: float | None,
    queue_timeout: float,
    wait: str,
    prune: bool,
    allow_empty: bool,
    sandbox: bool,
    output: str,
    verbose: int,
) -> None:
    """Start every job whose spec has not run yet, and wait for the outcomes.

    A job that is over stays over: run the same specs again and nothing changes. On Ctrl-C the
    jobs that have started go on; the next reconcile takes them up.
    """
    if not once:
        raise click.UsageError("reconcile needs --once")
    settings = load_config(config)
    jobs = valid_jobs(options.all_paths(paths, filenames), settings, namespace).jobs
    if prune and not jobs and not allow_empty:
        hint = "--allow-empty, if that is meant"
        raise UsageError("there are no specs: --prune would remove every job", hint=hint)

    from engine.cluster.connect import connect  # noqa: PLC0415 - valid specs come first
    from engine.controller.once import OnceRun  # noqa: PLC0415
    from engine.controller.once_result import OnceOptions, WaitFor  # noqa: PLC0415
    from engine.controller.prune.after_reconcile import AfterReconcile, PrunePass  # noqa: PLC0415

    if sandbox:
        kubeconfig, context = click.get_current_context().with_resource(_sandbox(jobs)), ""
    connection = connect(kubeconfig, context, connections=concurrency + 4)
    jobs = placed(jobs, connection.namespace, settings.limits)
    show = progress(KNOWN, verbose=verbose > 0, no_colour="NO_COLOR" in os.environ)
    once_options = OnceOptions(source, concurrency, timeout, queue_timeout, WaitFor(wait))
    run = OnceRun(connection.client, jobs, settings, once_options, Templates(templates), show)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        result, pruned = run.run(os.environ, KNOWN), PrunePass()
        if not result.interrupted:
            after = AfterReconcile(connection.client, settings, source, concurrency, prune)
            keys = frozenset(job.key for job in jobs)
            places = {connection.namespace, namespace, *(key.namespace for key in keys)} - {""}
            pruned = after.run(run.pods(), keys, sorted(places))
    finally:
        show.close()
    printed = result_json if output == "json" else result_table
    click.echo(printed(result, KNOWN, pruned))
    for told in pruned.told:
        click.echo(told, err=True)
    under_way = sum(not job.over for job in result.jobs)
    told = f"{under_way} job{' is' if under_way == 1 else 's are'} not over"
    if result.interrupted:
        text = f"interrupted: {told}; what has started goes on, and the next reconcile takes it up"
        click.echo(text, err=True)
    elif result.timed_out:
        click.echo(f"timeout: {told}; what has started goes on", err=True)
    if verbose > 1:
        _tell_crashes(result)
    sys.exit(max(exit_code(result), pruned.exit_code))


@contextmanager
def _sandbox(jobs: Iterable[Job]) -> Iterator[str]:
    """Path of the kubeconfig of a sandbox that has every namespace of `jobs`."""
    from engine.sandbox import Sandbox  # noqa: PLC0415 - only who asks for it pays for it

    with tempfile.TemporaryDirectory(prefix="engine-sandbox-") as folder, Sandbox() as running:
        for job in jobs:
            running.namespace(job.namespace or "default")
        click.echo("note: this is a simulated cluster; no container is run", err=True)
        yield str(running.write_kubeconfig(Path(folder, "kubeconfig")))


def _tell_crashes(result: OnceResult) -> None:
    for job in result.jobs:
        if job.error is not None and job.error.__cause__ is not None:
            lines = traceback.format_exception(job.error.__cause__)
            click.echo(KNOWN(f"{job.job.key}: {''.join(lines)}"), err=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
