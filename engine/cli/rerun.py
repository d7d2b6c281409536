"""`engine rerun`: run the same spec once more."""

import click

from engine.cli import options
from engine.cli.by_name import ask_each, require_names_or, select_jobs
from engine.cli.output import echo_note
from engine.status.outcome import State


@click.command()
@options.jobs()
@options.jobs_namespace
@options.all_namespaces
@options.record_selector
@options.option("--failed", is_flag=True, help="All jobs whose last run has failed.")
@options.cluster
def command(
    jobs: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    failed: bool,
    kubeconfig: str,
    context: str,
) -> None:
    """Run jobs once more whose spec has not changed.

    JOBS must be over; the next reconcile starts the run.
    """
    require_names_or("--failed or -l", jobs, selected=failed or bool(selector))
    from engine.cluster.connect import connect  # noqa: PLC0415 - --help needs no cluster
    from engine.cluster.server import check_server_version  # noqa: PLC0415
    from engine.reconcile.job_requests import rerun_job  # noqa: PLC0415

    connection = connect(kubeconfig, context, on_silence=echo_note)
    check_server_version(connection.client)
    client, default = connection.client, connection.namespace
    if not jobs:
        where = "" if all_namespaces else namespace or default
        states = {State.FAILED} if failed else {state for state in State if state.is_final}
        jobs = select_jobs(client, where, selector, lambda record: record.state in states)
    ask_each(namespace, default, jobs, lambda key: rerun_job(client, key))
