"""`engine status`: the states of jobs."""

import sys
import time
from collections.abc import Callable

import click

from engine.cli import options
from engine.cli.by_name import job_key
from engine.cli.output import (
    echo,
    echo_data,
    echo_error,
    echo_table,
    format_rows,
    terminal_width,
    wants_colour,
)
from engine.cli.printers.status import failed_first, freshness_lines, overview_data, overview_rows
from engine.errors import ApiError, EngineError, ExitCode, UsageError, no_record
from engine.inspect.view import JobView, Overview, read_overview
from engine.refs import JobKey

_INTERVAL = 2.0
"""Seconds between two reads of --watch."""
_BAD_REQUEST = 400


@options.verb(
    "engine status -n ci",
    "engine status -A -w",
    "engine status ci/build -o wide",
    params=(
        options.JOB_NAMES(),
        options.SEVERAL_NAMESPACES,
        options.ALL_NAMESPACES,
        options.RECORD_SELECTOR,
        options.option("-w", "--watch", is_flag=True, help="Go on, with a line for each change."),
        options.COLOR,
        *options.CLUSTER,
        options.output("table", "wide", "json", "yaml", "name"),
    ),
)
def command(
    jobs: tuple[str, ...],
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    selector: str,
    watch: bool,
    color: str,
    kubeconfig: str,
    context: str,
    output: str,
) -> None:
    """Show the states of jobs, by their records and their pods.

    All jobs, or those that are named: as they are printed, ci/build, or by their name in the
    namespaces of -n. stderr shows the age of the data and whether an engine follows the source.
    """
    if all_namespaces and namespaces:
        raise UsageError("give namespaces or --all-namespaces, not both")
    if watch and output not in ("table", "wide"):
        raise UsageError(f"--watch prints lines of a table, not {output}")
    connection = options.connect(kubeconfig, context)
    given = ("",) if all_namespaces else namespaces or (connection.namespace,)
    named = [{job_key(name, "", place) for place in given} for name in jobs]
    wanted: set[JobKey] = set().union(*named)
    read_from = given
    if wanted and not all_namespaces:
        read_from = tuple(sorted({key.namespace for key in wanted}))

    def read() -> tuple[Overview, list[JobView]]:
        try:
            overview = read_overview(connection.client, read_from, selector)
        except ApiError as error:
            if selector and error.status == _BAD_REQUEST:
                raise UsageError(f"the server refuses this selector: {error.cause}") from None
            raise
        return overview, [job for job in overview.jobs if not wanted or _names(job) & wanted]

    overview, found = read()
    for job in found:
        if job.error is not None:
            echo_error(job.error)
    if watch:
        _watch(read, wide=output == "wide", color=color)
    _print(overview, found, output, color)
    if not found and not wanted and output in ("table", "wide"):
        where = "" if all_namespaces else f" in namespace {', '.join(given)} (-A looks in all)"
        echo(f"no jobs{where}", err=True)
    there = set().union(*map(_names, found))
    missing = [keys for keys in named if not keys & there]
    for keys in missing:
        echo_error(no_record(", ".join(sorted(str(key).lstrip("/") for key in keys))))
    if missing:
        sys.exit(ExitCode.INVALID)


def _names(job: JobView) -> set[JobKey]:
    """Its key, and the same in all namespaces: what -A makes of a name alone."""
    return {job.key, JobKey("", job.key.name)}


def _print(overview: Overview, jobs: list[JobView], output: str, color: str) -> None:
    if output in ("json", "yaml"):
        echo_data(overview_data(overview, jobs), output)
    elif output == "name":
        for job in jobs:
            echo(str(job.key))
    elif jobs:
        rows = overview_rows(failed_first(jobs), overview.as_of, wide=output == "wide")
        echo_table(rows, color)
        for line in freshness_lines(overview, jobs):
            echo(line, err=True)


def _watch(read: Callable[[], tuple[Overview, list[JobView]]], *, wide: bool, color: str) -> None:
    """Until Ctrl-C: all jobs, and then the row of each that has changed, or is gone."""
    colour = wants_colour(color, sys.stdout)
    shown: dict[JobKey, object] = {}
    is_first, last_error = True, ""
    while True:
        try:
            overview, jobs = read()
        except EngineError as error:
            if not error.retryable:
                raise
            if str(error) != last_error:
                echo_error(error)
            last_error = str(error)
        else:
            jobs = failed_first(jobs)
            found = {job.key: job.without_ages for job in jobs}
            gone = sorted(shown.keys() - found.keys())
            rows = overview_rows(jobs, overview.as_of, gone, wide=wide)
            head, *lines = format_rows(rows, width=terminal_width(), colour=colour)
            changed = [
                line
                for key, line in zip([*found, *gone], lines, strict=True)
                if shown.get(key) != found.get(key)
            ]
            for line in [head, *changed] if is_first else changed:
                click.echo(line, color=colour)
            shown, is_first, last_error = found, False, ""
        time.sleep(_INTERVAL)
