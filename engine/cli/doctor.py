"""`engine doctor`: what would keep the engine from working on this cluster."""

import sys
from pathlib import Path

from engine.cli import options
from engine.cli.loading import load_config
from engine.cli.output import echo_data, echo_note, echo_table
from engine.cli.verb import verb
from engine.errors import ClusterError, ExitCode


@verb("engine doctor -n ci", "engine doctor -n ci -n dev --source web")
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
        echo_table(finding_rows(found), color)
    sys.exit(ExitCode.CLUSTER if worst(found) is Level.FAILED else ExitCode.OK)
