"""`engine status`: the states of jobs."""

import sys
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from engine.api.model import Job
from engine.cli import options
from engine.cli import output as printing
from engine.cli.by_name import job_key
from engine.cli.printers.status import overview_data, overview_rows, source_lines, succeeded_last
from engine.cluster.client import Client
from engine.errors import ApiError, EngineError, ExitCode, UsageError, no_record
from engine.inspect.view import JobView, Overview, read_overview
from engine.lifecycle.outdated import explain_outdated, outdated_fields
from engine.refs import JobKey
from engine.specdir.options import SpecOptions
from engine.status.drain import drain_words, runs_on
from engine.status.outcome import State

_INTERVAL = 2.0
"""Seconds between two reads of --watch."""


@options.verb(
    "engine status -n ci",
    "engine status -A -w",
    "engine status --failed -o wide",
    "engine status -A --node node-1",
    "engine status -f jobs/",
    params=(
        options.JOB_NAMES(),
        options.SEVERAL_NAMESPACES,
        options.ALL_NAMESPACES,
        options.RECORD_SELECTOR,
        options.FILENAMES("The jobs of these specs; and which ran with other defaults."),
        options.flag("--failed", "Only jobs whose last run failed."),
        options.OF_SOURCE("Only jobs of this source; ENGINE_SOURCE hides none."),
        options.NODE,
        options.flag("-w", "--watch", "Go on, with a line for each change."),
        *options.CLUSTER,
        *options.SPEC_READING,
        options.output("table", "wide", "json", "yaml", "name"),
    ),
)
def command(
    jobs: tuple[str, ...],
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    filenames: tuple[str, ...],
    failed: bool,
    source: str | None,
    node: str,
    watch: bool,
    output: str,
    **reading: Any,
) -> None:
    """Show the states of jobs, by their records and their pods.

    All jobs, or those of -f, or those that are named: as they are printed, ci/build, or by their
    name in the namespaces of -n. With --node only those whose pods are on that node, and which of
    them hold its drain until when. While a job is not over, stderr says which engine follows its
    source.
    """
    if all_namespaces and namespaces:
        raise UsageError("give namespaces or --all-namespaces, not both")
    if jobs and filenames:
        raise UsageError("name jobs or give -f, not both")
    if watch and output not in ("table", "wide"):
        raise UsageError(f"--watch prints lines of a table, not {output}")
    connection = options.connect()
    given = ("",) if all_namespaces else namespaces or (connection.namespace,)
    specs: Mapping[JobKey, Job] = {}
    if filenames:
        from engine.cli.loading import load_by_key  # noqa: PLC0415 - rarely needed

        asked = SpecOptions(paths=filenames, namespace="".join(namespaces[:1]), **reading)
        specs = load_by_key(asked, connection.namespace)
    named = [{job_key(name, "", place) for place in given} for name in jobs]
    named += [{key} for key in specs]
    wanted: set[JobKey] = set().union(*named)
    read_from = given
    if specs or (wanted and not all_namespaces):
        read_from = tuple(sorted({key.namespace for key in wanted}))

    from_where = click.get_current_context().get_parameter_source("source")
    source = source if from_where is ParameterSource.COMMANDLINE else None

    def read() -> tuple[Overview, list[JobView]]:
        overview = _read(connection.client, read_from, selector)
        found = [j for j in overview.jobs if _is_wanted(j, wanted, source, node, failed=failed)]
        if specs:
            found = [replace(j, outdated=outdated_fields(specs[j.key], j.record)) for j in found]
        return overview, found

    overview, found = read()
    for job in found:
        if job.error is not None:
            printing.echo_error(job.error)
    if watch:
        _watch(read, wide=output == "wide")
    _print(overview, found, output, with_drains=bool(node))
    if words := explain_outdated((job.outdated or () for job in found), filenames):
        printing.echo(words, err=True)
    if not found and not wanted and output in ("table", "wide"):
        where = "" if all_namespaces else f" in namespace {', '.join(given)} (-A looks in all)"
        where = f" of source {source}{where}" if source else where
        printing.echo(f"no {'failed ' if failed else ''}jobs{where}", err=True)
    there = set().union(*map(_names, overview.jobs))
    _end_where_missing([keys for keys in named if not keys & there])


def _end_where_missing(named: list[set[JobKey]]) -> None:
    """Each is a job that was named, and isn't there under any of its keys."""
    for keys in named:
        printing.echo_error(no_record(", ".join(sorted(str(key).lstrip("/") for key in keys))))
    if named:
        sys.exit(ExitCode.INVALID)


def _read(client: Client, namespaces: tuple[str, ...], selector: str) -> Overview:
    """Errors: UsageError for a selector that the server refuses; others of the API."""
    try:
        return read_overview(client, namespaces, selector)
    except ApiError as error:
        if selector and error.status == HTTPStatus.BAD_REQUEST:
            raise UsageError(f"the server refuses this selector: {error.cause}") from None
        raise


def _is_wanted(
    job: JobView, wanted: set[JobKey], source: str | None, node: str, *, failed: bool
) -> bool:
    """One whose record can't be read may have failed, and be of any source."""
    has_failed = job.error is not None or (job.status and job.status.state is State.FAILED)
    is_named = not wanted or bool(_names(job) & wanted)
    is_of_source = source is None or not job.record or job.record.source == source
    is_there = not node or runs_on(job.pod) == node
    return is_named and is_of_source and is_there and bool(has_failed or not failed)


def _names(job: JobView) -> set[JobKey]:
    """Its key, and the same in all namespaces: what -A makes of a name alone."""
    return {job.key, JobKey("", job.key.name)}


def _print(overview: Overview, jobs: list[JobView], output: str, *, with_drains: bool) -> None:
    if output in ("json", "yaml"):
        printing.echo_data(overview_data(overview, jobs), output)
    elif output == "name":
        for job in jobs:
            printing.echo(str(job.key))
    elif jobs:
        rows = overview_rows(succeeded_last(jobs), overview.as_of, wide=output == "wide")
        printing.echo_table(rows)
        for line in source_lines(overview, jobs):
            printing.echo(line, err=True)
        for job in jobs if with_drains else ():
            if words := drain_words(job.pod):
                printing.echo(f"{job.key} {words}", err=True)


def _watch(read: Callable[[], tuple[Overview, list[JobView]]], *, wide: bool) -> None:
    """Until Ctrl-C: all jobs, and then the row of each that has changed, or is gone."""
    colour = printing.wants_colour(sys.stdout)
    shown: dict[JobKey, object] = {}
    is_first, last_error = True, ""
    while True:
        try:
            overview, jobs = read()
        except EngineError as error:
            if not error.retryable:
                raise
            if str(error) != last_error:
                printing.echo_error(error)
            last_error = str(error)
        else:
            jobs = succeeded_last(jobs)
            found = {job.key: job.without_ages for job in jobs}
            gone = sorted(shown.keys() - found.keys())
            rows = overview_rows(jobs, overview.as_of, gone, wide=wide)
            head, *lines = printing.format_rows(
                rows, width=printing.terminal_width(), colour=colour
            )
            changed = [
                line
                for key, line in zip([*found, *gone], lines, strict=True)
                if shown.get(key) != found.get(key)
            ]
            for line in [head, *changed] if is_first else changed:
                click.echo(line, color=colour)
            shown, is_first, last_error = found, False, ""
        time.sleep(_INTERVAL)
