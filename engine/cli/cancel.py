"""`engine cancel`: end jobs by name."""

import click

from engine.cli import options
from engine.cli.by_name import ask_each, require_names_or, select_jobs, who
from engine.cli.output import echo_note


@click.command()
@options.jobs()
@options.jobs_namespace
@options.all_namespaces
@options.record_selector
@options.option("--all", "every", is_flag=True, help="All jobs that are not over.")
@options.option("--reason", default="", help="Why; goes into the record.")
@options.cluster
def command(
    jobs: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    every: bool,
    reason: str,
    kubeconfig: str,
    context: str,
) -> None:
    """End jobs by name.

    Who did it, and why, is written into the records of JOBS; then their pods are deleted. What is
    over already stays as it is. A cancelled job doesn't run again until its spec changes or
    `engine rerun` asks for it.
    """
    require_names_or("--all or -l", jobs, selected=every or bool(selector))
    from engine.cluster.connect import connect  # noqa: PLC0415 - --help needs no cluster
    from engine.cluster.server import check_server_version  # noqa: PLC0415
    from engine.reconcile.job_requests import cancel_job  # noqa: PLC0415

    connection = connect(kubeconfig, context, on_silence=echo_note)
    check_server_version(connection.client)
    message = f"cancelled by {who()}" + (f": {reason}" if reason else "")
    client, default = connection.client, connection.namespace
    if not jobs:
        where = "" if all_namespaces else namespace or default
        jobs = select_jobs(client, where, selector, lambda record: not record.state.is_final)
    ask_each(namespace, default, jobs, lambda key: cancel_job(client, key, message))
