"""`engine reconcile`: make the specs happen, once or from now on."""

from typing import Any

import click
from click.core import ParameterSource

from engine.cli import options
from engine.cli.verb import verb

LONGEST_LEASE = 3600.0
"""As in `runtime.lease`, which isn't imported for --help."""
_ONLY_WITH_ONCE = ("timeout", "queue_timeout", "wait", "output", "junit")
_NOT_WITH_ONCE = ("prune_interval", "poll", "leader_elect", "lease_duration", "metrics_address")
_NOT_IN_A_DRY_RUN = ("timeout", "queue_timeout", "wait", "junit", "logs_dir")


@verb(
    "engine reconcile --once jobs",
    "engine reconcile --once jobs --timeout 30m --junit report.xml",
    "engine reconcile jobs --source web --dry-run=server",
    "engine reconcile jobs --source web --leader-elect --metrics-address :8080",
)
@options.paths
@options.option("--once", is_flag=True, help="Bring every job to its end, then stop.")
@options.reconciling
@options.concurrency("How many jobs are worked on at once.")
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
@options.prune
@options.option(
    "--max-starts",
    type=click.IntRange(min=0),
    help="Begin no new run if there would be more than this; default: limits.maxStarts.",
)
@options.option(
    "--dry-run",
    type=options.SharedChoice(["none", "client", "server"]),
    default="none",
    show_default=True,
    help="Say what would be done, and why, and do nothing; server: ask the server, too.",
)
@options.allow_empty
@options.option(
    "--sandbox", is_flag=True, help="Use a simulated cluster in this process; runs no container."
)
@options.logs_dir
@options.output("table", "json")
@options.file_to_write(
    "--junit", metavar="FILE", help="Write the result as JUnit XML, too, however it ends."
)
@options.option(
    "--prune-interval",
    type=options.Duration(),
    default=60.0,
    show_default="1m",
    help="How often expired pods are looked for. Not with --once.",
)
@options.option(
    "--poll",
    type=options.Duration(),
    help="Look for changed files this often instead of using inotify: for network folders.",
)
@options.option(
    "--leader-elect", is_flag=True, help="Stand by while another engine leads this source."
)
@options.option(
    "--lease-duration",
    type=options.Duration(longest=LONGEST_LEASE),
    default=15.0,
    show_default="15s",
    help="How long the lead is kept without a sign of life; an hour at most.",
)
@options.option(
    "--metrics-address",
    default="",
    help="Serve /metrics, /healthz and /readyz at HOST:PORT, :PORT or, on loopback, PORT.",
)
@options.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the log on stderr.",
)
@options.color
@options.verbose
def command(paths: tuple[str, ...], filenames: tuple[str, ...], once: bool, **given: Any) -> None:
    """Bring the jobs of a folder to their end.

    Every job whose spec has not run yet is started; then the files are watched, unless --once.
    A job that is over stays over: run the same specs again and nothing changes. On Ctrl-C and
    SIGTERM the jobs that have started go on; the next reconcile takes them up. SIGHUP reads
    configuration, templates and specs again.
    """
    is_dry = given["dry_run"] != "none"
    _refuse_what_has_no_effect(once=once or is_dry, is_dry=is_dry)
    if given["prune"]:
        options.require_own_source()
    # Each way of running has imports of its own, and `--help` needs none of them.
    from engine.cli.reconcile.common import ReconcileOptions, report_errors  # noqa: PLC0415

    asked = ReconcileOptions(paths=options.all_paths(paths, filenames), **given)
    if options.STDIN in asked.paths and not (once or is_dry):
        raise click.UsageError("- is read once: it needs --once or --dry-run")
    with report_errors(asked):
        if is_dry:
            from engine.cli.reconcile.dry_run import print_plan  # noqa: PLC0415

            print_plan(asked)
        elif once:
            from engine.cli.reconcile.once import run_once  # noqa: PLC0415

            run_once(asked)
        else:
            from engine.cli.reconcile.stay import run_manager  # noqa: PLC0415

            run_manager(asked)


def _refuse_what_has_no_effect(*, once: bool, is_dry: bool) -> None:
    """Errors: UsageError for an option that was given and belongs to the other way of running."""
    context = click.get_current_context()
    refused = dict.fromkeys(_NOT_WITH_ONCE, "has no effect with --once")
    if not once:
        refused = dict.fromkeys(_ONLY_WITH_ONCE, "needs --once")
    elif is_dry:
        refused |= dict.fromkeys(_NOT_IN_A_DRY_RUN, "has no effect with --dry-run")
    for name, words in refused.items():
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} {words}")
