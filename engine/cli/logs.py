"""`engine logs`: the output of jobs' containers."""

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click

from engine.cli import options
from engine.cli.by_name import Selection, job_key
from engine.cli.output import echo, echo_error, sanitize_log
from engine.errors import EngineError, UsageError
from engine.inspect.logs import JobLogs
from engine.refs import JobKey
from engine.status.outcome import State

_MOST_FOLLOWED = 16
_TICK = 0.5
_PRINTING = threading.Lock()


@options.verb(
    "engine logs ci/build -f",
    "engine logs build --attempt 1 --tail 50",
    "engine logs --failed -n ci",
    "engine logs build -p",
    params=(
        *options.SELECTED_JOBS,
        options.flag("--failed", "All jobs whose last run failed."),
        options.flag("--all", "every", "All jobs."),
        options.flag("-f", "--follow", "Go on until the job is over."),
        options.flag("--exit-code", "With -f: end with the job's own exit code."),
        options.option(
            "-c",
            "--container",
            "Container; default: the init container that runs or has failed, else main.",
            default="",
        ),
        options.option(
            "--attempt",
            "Number of the attempt, as the name of its pod ends.",
            type=click.IntRange(min=1),
        ),
        options.option("--run", "Short name of the run, as pods have it.", default=""),
        options.flag("-p", "--previous", "The run before the newest."),
        options.COUNT("--tail", "Begin with the last so many lines."),
        *options.CLUSTER,
    ),
)
def command(failed: bool, every: bool, follow: bool, exit_code: bool, **given: Any) -> None:
    """Print the output of jobs' containers.

    JOBS are named as they are printed, ci/build, or by their names in the namespace of -n. Of
    several jobs each line begins with the job. Without --attempt the log is that of the newest one;
    --follow goes on with every later one.
    """
    selection = Selection.of(given)
    selection.require("--failed, --all", every=every or failed)
    if exit_code and not follow:
        raise UsageError("--exit-code needs -f")
    if given["previous"] and given["run"]:
        raise UsageError("give --run or -p, not both")
    connection = options.connect(_MOST_FOLLOWED + 2)
    client, home = connection.client, connection.namespace
    names = dict.fromkeys(selection.jobs)
    keys = [job_key(name, selection.namespace, home) for name in names]
    if not names:
        places = selection.namespaces(home)
        found = selection.records(client, places, lambda r: r.state is State.FAILED or not failed)
        keys = [record.key for record in found]
    if follow and len(keys) > _MOST_FOLLOWED:
        raise UsageError(f"{len(keys)} jobs: -f follows {_MOST_FOLLOWED} at most")
    has_prefix = len(names) != 1
    codes: list[int] = []

    def show(key: JobKey) -> None:
        of_job, prefix = JobLogs(client, key, **given), f"{key} | " if has_prefix else ""
        try:
            _print(of_job.follow(partial(echo, err=True)) if follow else of_job.read(), prefix)
            codes.append(of_job.exit_code() if exit_code else 0)
        except EngineError as error:
            echo_error(error)
            codes.append(error.exit_code)

    if follow and len(keys) > 1:
        _at_once(show, keys)
    else:
        for key in keys:
            show(key)
    sys.exit(max(codes, default=0))


def _print(pieces: Iterator[bytes], prefix: str) -> None:
    """Line by line, each as soon as it is there."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            _print_line(line, prefix)
        sys.stdout.flush()
    if rest:
        _print_line(rest, prefix)


def _print_line(line: bytes, prefix: str) -> None:
    with _PRINTING:
        click.echo(prefix + sanitize_log(line.decode(errors="replace")), color=True)


def _at_once(show: Callable[[JobKey], None], keys: list[JobKey]) -> None:
    """In threads that Ctrl-C leaves behind."""
    threads = [threading.Thread(target=show, args=(key,), daemon=True) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_TICK)
