"""`engine describe`: all that is known of a job."""

import sys

import click

from engine.cli import options
from engine.cli.by_name import job_key
from engine.cli.output import echo_data, echo_error, wants_colour
from engine.cli.printers.describe import job_data, job_lines
from engine.errors import UsageError
from engine.inspect.view import read_job


@options.verb(
    "engine describe ci/build",
    "engine describe build -n ci -o json",
    params=(
        options.JOB_NAMES(required=True),
        options.JOBS_NAMESPACE,
        *options.CLUSTER,
        options.output("table", "json", "yaml"),
    ),
)
def command(jobs: tuple[str, ...], namespace: str, output: str) -> None:
    """Show everything about a job, and what comes next.

    Its attempts, pods and Events, and what it waits for. JOBS are named as they are printed,
    ci/build, or by their name in the namespace of -n.
    """
    connection = options.connect()
    codes, found = [0], []
    for name in jobs:
        try:
            key = job_key(name, namespace, connection.namespace)
            found.append(read_job(connection.client, key))
        except UsageError as error:
            echo_error(error)
            codes.append(error.exit_code)
    codes += [view.error.exit_code for view, _ in found if view.error is not None]
    if output != "table":
        echo_data({"jobs": [job_data(*one) for one in found]}, output)
    else:
        colour = wants_colour(sys.stdout)
        texts = ["\n".join(job_lines(*one, colour=colour)) for one in found]
        click.echo("\n\n".join(texts), color=colour)
    sys.exit(max(codes))
