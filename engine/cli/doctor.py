"""`engine doctor`: what keeps the engine from working on this cluster."""

import sys
from collections.abc import Sequence

from msgspec.structs import asdict

from engine.cli import options
from engine.cli.output import echo_data, echo_table
from engine.errors import ClusterError, ExitCode
from engine.inspect.doctor import CheckResult, CheckStatus, diagnose

_LINES = 10
"""That what is lost and its remedy may fill on a terminal: they are never cut."""


@options.verb(
    "engine doctor -n ci",
    "engine doctor -n ci -n dev -o json",
    params=(options.SEVERAL_NAMESPACES, *options.CLUSTER, options.output("table", "json", "yaml")),
)
def command(namespaces: tuple[str, ...], output: str) -> None:
    """Find what keeps the engine from working on this cluster.

    Server version, namespaces, rights and full quotas. Each check is OK, SKIPPED (with the right
    that it needs), DEGRADED (with what is lost) or FAILED (with what to do). Nothing is changed.
    Exit code 0 unless a check failed.
    """
    try:
        connection = options.connect()
        places = tuple(dict.fromkeys(namespaces or (connection.namespace,)))
        results = diagnose(connection.client, places)
    except ClusterError as error:
        where = f"{error.where}: " if error.where else ""
        results = [CheckResult("reach", CheckStatus.FAILED, f"{where}{error.cause}", error.hint)]
    worst = max((one.status for one in results), key=[*CheckStatus].index)
    if output == "table":
        echo_table(result_rows(results), below=_LINES)
    else:
        checks = [asdict(one) | {"namespace": one.namespace or None} for one in results]
        echo_data({"status": worst, "checks": checks}, output)
    sys.exit(ExitCode.CLUSTER if worst is CheckStatus.FAILED else ExitCode.OK)


def result_rows(results: Sequence[CheckResult]) -> list[tuple[str, ...]]:
    """The head, and a row for each result, which ends with its remedy."""
    rows: list[tuple[str, ...]] = [("STATUS", "CHECK", "NAMESPACE", "FOUND")]
    for one in results:
        remedy = f" ({one.remedy})" if one.remedy else ""
        rows.append((one.status, one.check, one.namespace, f"{one.message}{remedy}"))
    return rows
