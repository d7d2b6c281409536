"""`engine doctor`: what would keep the engine from working on this cluster."""

import sys
from pathlib import Path

import click

from engine.cli import options
from engine.cli.loading import load_config
from engine.cli.output import echo_data, echo_note
from engine.errors import ClusterError, ExitCode


@click.command()
@options.namespaces
@options.source
@options.config
@options.color
@options.cluster
@options.output("table", "json", "yaml")
def command(
    namespaces: tuple[str, ...],
    source: str,
    config: Path | None,
    color: str,
    kubeconfig: str,
    context: str,
    output: str,
) -> None:
    """Find what would keep the engine from working on this cluster.

    Reach, version, clock, rights, quotas, limit ranges, Pod Security, registry Secrets and the
    Lease of the source: each is OK, degraded (and what is lost), or failed (and what to do).
    Nothing is changed. Exit code 0 unless something failed.
    """
    settings = load_config(config)
    from engine.cli.printers.doctor import finding_rows, findings_data, worst  # noqa: PLC0415
    from engine.cli.printers.table import format_rows, terminal_width, wants_colour  # noqa: PLC0415
    from engine.cluster.connect import connect  # noqa: PLC0415
    from engine.decide.doctor import Finding, Level, diagnose  # noqa: PLC0415
    from engine.reconcile.examination import examine  # noqa: PLC0415

    try:
        connection = connect(kubeconfig, context, on_silence=echo_note)
        places = tuple(dict.fromkeys(namespaces or (connection.namespace,)))
        facts = examine(connection.client, places, source, settings.limits.pod_security)
    except ClusterError as error:
        where = f"{error.where}: " if error.where else ""
        found = [Finding("reach", Level.FAILED, f"{where}{error.cause}", error.hint)]
    else:
        found = diagnose(facts)
    if output != "table":
        echo_data(findings_data(found), output)
    else:
        colour = wants_colour(color, sys.stdout)
        for line in format_rows(finding_rows(found), width=terminal_width(), colour=colour):
            click.echo(line, color=colour)
    sys.exit(ExitCode.CLUSTER if worst(found) is Level.FAILED else ExitCode.OK)
