"""`engine describe`: everything about a job."""

import sys

import click

from engine.cli import options
from engine.cli.by_name import job_key
from engine.cli.output import echo_data, echo_error, echo_note
from engine.cli.verb import verb
from engine.errors import EngineError, UsageError


@verb("engine describe ci/build", "engine describe build -n ci -o json")
@options.jobs(required=True)
@options.jobs_namespace
@options.color
@options.cluster
@options.output("table", "json", "yaml")
def command(
    jobs: tuple[str, ...],
    namespace: str,
    color: str,
    kubeconfig: str,
    context: str,
    output: str,
) -> None:
    """Show everything about a job, and what comes next.

    Its attempts, pods and Events, and what it waits for. JOBS are named as they are printed,
    ci/build, or by their name in the namespace of -n.
    """
    from engine.cli.printers.describe import job_data, job_lines  # noqa: PLC0415 - for --help
    from engine.cli.printers.table import wants_colour  # noqa: PLC0415
    from engine.cluster.connect import connect  # noqa: PLC0415
    from engine.reconcile.job_details import read_details  # noqa: PLC0415

    connection = connect(kubeconfig, context, on_silence=echo_note)
    codes, told = [0], []
    for name in jobs:
        try:
            key = job_key(name, namespace, connection.namespace)
            told.append(read_details(connection.client, key))
        except UsageError as error:
            echo_error(error)
            codes.append(error.exit_code)
    broken: list[EngineError] = [d.job.error for d in told if d.job.error is not None]
    codes += [error.exit_code for error in broken]
    if output != "table":
        echo_data({"jobs": [job_data(details) for details in told]}, output)
    else:
        colour = wants_colour(color, sys.stdout)
        click.echo(
            "\n\n".join("\n".join(job_lines(one, colour=colour)) for one in told), color=colour
        )
    sys.exit(max(codes))
