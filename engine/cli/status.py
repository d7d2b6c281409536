"""`engine status`: what the records say."""

import click

from engine.cli import options
from engine.cli.printers.status import queue_positions, records_json, records_table


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
    found = listed.items
    records = [found[key] for key in sorted(found) if not jobs or key.name in jobs]
    missing = sorted(set(jobs) - {record.key.name for record in records})
    positions = queue_positions(found.values(), connection.client.now())
    for error in listed.invalid.values():
        click.echo(f"error: {error}", err=True)
    if output == "json":
        click.echo(records_json(records, positions))
    elif records:
        click.echo(records_table(records, positions))
    elif not missing:
        click.echo("no jobs" if all_namespaces else f"no jobs in namespace {where}", err=True)
    if missing:
        raise click.ClickException(f"no record of: {', '.join(missing)}")
