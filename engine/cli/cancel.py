"""`engine cancel`: end jobs by name."""

import click

from engine.cli import options
from engine.cli.by_name import ask_each, who
from engine.cli.output import echo_note


@click.command()
@options.jobs(required=True)
@options.jobs_namespace
@options.option("--reason", default="", help="Why; goes into the record.")
@options.cluster
def command(
    jobs: tuple[str, ...], namespace: str, reason: str, kubeconfig: str, context: str
) -> None:
    """End jobs by name.

    Who did it, and why, is written into the records of JOBS; then their pods are deleted. What is
    over already stays as it is. A cancelled job doesn't run again until its spec changes or
    `engine rerun` asks for it.
    """
    from engine.cluster.connect import connect  # noqa: PLC0415 - --help needs no cluster
    from engine.cluster.server import check_server_version  # noqa: PLC0415
    from engine.reconcile.job_requests import cancel_job  # noqa: PLC0415

    connection = connect(kubeconfig, context, on_silence=echo_note)
    check_server_version(connection.client)
    message = f"cancelled by {who()}" + (f": {reason}" if reason else "")
    ask_each(
        namespace or connection.namespace,
        jobs,
        lambda key: cancel_job(connection.client, key, message),
    )
