"""`engine rerun`: run the same spec once more."""

import click

from engine.cli import options
from engine.cli.by_name import ask_each
from engine.cli.output import echo_note


@click.command()
@options.jobs(required=True)
@options.jobs_namespace
@options.cluster
def command(jobs: tuple[str, ...], namespace: str, kubeconfig: str, context: str) -> None:
    """Run jobs once more whose spec has not changed.

    JOBS must be over; the next reconcile starts the run.
    """
    from engine.cluster.connect import connect  # noqa: PLC0415 - --help needs no cluster
    from engine.cluster.server import check_server_version  # noqa: PLC0415
    from engine.reconcile.job_requests import rerun_job  # noqa: PLC0415

    connection = connect(kubeconfig, context, on_silence=echo_note)
    check_server_version(connection.client)
    ask_each(namespace or connection.namespace, jobs, lambda key: rerun_job(connection.client, key))
