"""`engine status`: what the records say."""

from collections.abc import Collection

import click

from engine.cli import options
from engine.cli.output import echo_error
from engine.cli.printers.status import queue_positions, records_json, records_table
from engine.refs import JobKey


@click.command()
@click.argument("jobs", nargs=-1)
@options.jobs_namespace
@options.all_namespaces
@options.option("-l", "--selector", default="", help="Label selector on the records.")
@options.cluster
@options.output("table", "json")
def command(
    jobs: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    kubeconfig: str,
    context: str,
    output: str,
) -> None:
    """Show what the records say about jobs and their runs.

    State, outcome and attempts of each job, or of the JOBS that are named.
    """
    from engine.cluster.connect import connect  # noqa: PLC0415 - --help needs no cluster
    from engine.cluster.records import list_records  # noqa: PLC0415

    connection = connect(kubeconfig, context)
    where = "" if all_namespaces else namespace or connection.namespace
    listed = list_records(connection.client, where, selector)
    positions = queue_positions(listed.items.values(), connection.client.now())
    records = [record for key, record in listed.items.items() if _is_named(key, jobs)]
    broken = {key: error for key, error in listed.invalid.items() if _is_named(key, jobs)}
    missing = sorted({*jobs} - {key.name for key in (*listed.items, *listed.invalid)})
    for _, error in sorted(broken.items()):
        echo_error(error)
    if output == "json":
        click.echo(records_json(records, positions, broken))
    elif records or broken:
        click.echo(records_table(records, positions, broken))
    elif not missing:
        click.echo("no jobs" if all_namespaces else f"no jobs in namespace {where}", err=True)
    if missing:
        raise click.ClickException(f"no record of: {', '.join(missing)}")


def _is_named(key: JobKey, jobs: Collection[str]) -> bool:
    return not jobs or key.name in jobs
