"""`engine prune`: delete what has outlived its TTL, once; for a CronJob and for people."""

import sys
from pathlib import Path
from typing import Any

import click

from engine.cli import options
from engine.cli.loading import load_settings
from engine.cli.output import echo, echo_stderr
from engine.cli.printers import prune as printing
from engine.errors import EngineError
from engine.prune.delete import Deleter
from engine.prune.result import DryRun
from engine.prune.run import PruneOptions, prune
from engine.specdir.options import SpecOptions
from engine.telemetry.redact import REDACTOR
from engine.values import map_text
from engine.wellknown import FOREIGN_TTLS


def _kinds(text: str) -> tuple[str, ...]:
    """Errors: ValueError."""
    if named := tuple(filter(None, map(str.strip, text.split(",")))):
        return named
    raise ValueError("name at least one kind")


@options.verb(
    "engine prune -n ci --dry-run=client",
    "engine prune -A --max-deletes 500",
    params=(
        options.NAMESPACES(
            "Namespace; may be given several times. With -A: one of kube-* that is meant, too."
        ),
        options.flag("-A", "--all-namespaces", "All namespaces but kube-*."),
        options.option("-l", "--selector", "Label selector on the objects.", default=""),
        options.option(
            "--kinds",
            "Kinds, with their group: pods,deployments.apps,widgets.example.com.",
            type=_kinds,
            default="pods,secrets,configmaps",
        ),
        options.option(
            "--annotation",
            "annotations",
            "One more annotation that holds a TTL, such as janitor/ttl; may be given several"
            " times.",
            multiple=True,
        ),
        options.DRY_RUN("client: say what would go; server: ask the server, too."),
        options.COUNT("--max-deletes", "Delete no more than this."),
        options.CONCURRENCY("How many deletes are under way at once.", default=8),
        *options.CLUSTER,
        options.CONFIG,
        options.output("table", "json"),
        options.VERBOSE,
    ),
)
def command(
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    annotations: tuple[str, ...],
    dry_run: str,
    max_deletes: int | None,
    config: Path | None,
    output: str,
    verbose: int,
    **given: Any,
) -> None:
    """Delete what has outlived its TTL.

    A TTL is an annotation: jobs.engine/ttl, jobs.engine/expires-at,
    cleaner.kubernetes.gitlab.org/ttl, or one that --annotation names. An object with
    jobs.engine/hold: "true" stays, and so does one whose TTL can't be read. The record of a job
    goes once its spec has been gone for records.ttl (30d), after the job's last pod. Exit code 0
    only if everything that should go went, or was left by --max-deletes for the next run. What
    stays is counted, and listed with -v and in JSON.
    """
    if all_namespaces and not all(name.startswith("kube-") for name in namespaces):
        raise click.UsageError("give namespaces or --all-namespaces, not both")
    settings = load_settings(SpecOptions(config=config))
    connection = options.connect(given["concurrency"] + 2)
    chosen = PruneOptions(
        namespaces=("", *namespaces) if all_namespaces else namespaces or (connection.namespace,),
        annotations=(*FOREIGN_TTLS, *settings.prune_annotations, *annotations),
        records_ttl=settings.records.ttl,
        **given,
    )
    limit = settings.limits.max_deletes_per_pass if max_deletes is None else max_deletes
    wanted = DryRun(dry_run)  # the client's needs no right but to list
    deleter = Deleter(connection.client, limit, wanted, wanted is not DryRun.CLIENT)
    printer = printing.PrunePrinter(sys.stdout, output, verbose=verbose > 0)
    try:
        result = prune(deleter, chosen, printer.entry)
    except EngineError as failure:
        printer.end((failure,))
        raise
    except KeyboardInterrupt:
        printer.end((EngineError("interrupted"),))
        raise
    printer.end(result.errors)
    for line in map_text(result, REDACTOR).lines:
        echo(line, err=True)
    if output != "json":
        echo_stderr(printing.summary(result))
    sys.exit(result.exit_code)
