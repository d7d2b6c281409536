"""`engine logs`: what a job's containers wrote."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from engine.cli import options
from engine.cli.by_name import job_key
from engine.cli.output import echo, echo_note
from engine.cli.printers.text import log_lines
from engine.cli.verb import verb


@verb("engine logs ci/build -f", "engine logs build --attempt 1 --tail 50")
@click.argument("job", shell_complete=options.complete("jobs"))
@options.option("-f", "--follow", is_flag=True, help="Go on until the job is over.")
@options.option(
    "-c",
    "--container",
    default="",
    help="Container; default: the init container that runs or has failed, else main.",
)
@options.option("--attempt", type=click.IntRange(min=1), help="Number of the attempt.")
@options.option("-p", "--previous", is_flag=True, help="The attempt before that one.")
@options.option("--tail", type=click.IntRange(min=0), help="Begin with the last so many lines.")
@options.option(
    "--logs-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where --logs-dir of prune or reconcile has saved the logs of pods that are gone.",
)
@options.jobs_namespace
@options.cluster
def command(
    job: str,
    follow: bool,
    container: str,
    attempt: int | None,
    previous: bool,
    tail: int | None,
    logs_dir: Path | None,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Print what a job's containers wrote.

    JOB is named as it is printed, ci/build, or by its name in the namespace of -n. Without
    --attempt it is the newest one; with --follow every one that is still to come.
    """
    from engine.cluster.connect import connect  # noqa: PLC0415 - --help needs no cluster
    from engine.reconcile.job_logs import JobLogs, LogRequest  # noqa: PLC0415

    connection = connect(kubeconfig, context, on_silence=echo_note)
    key = job_key(job, namespace, connection.namespace)
    request = LogRequest(container, attempt, previous, tail, logs_dir)
    logs = JobLogs(connection.client, key, request)
    if not follow:
        _print(logs.read())
        return
    told = ""

    def tell(words: str) -> None:
        nonlocal told
        if words != told:
            echo(f"{key}: {words}", err=True)
        told = words

    _print(logs.follow(tell))


def _print(pieces: Iterable[bytes]) -> None:
    """Whole lines, as soon as they are there, and what is left without an end."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            _print_line(line)
        sys.stdout.flush()
    if rest:
        _print_line(rest)


def _print_line(line: bytes) -> None:
    click.echo(log_lines(line.decode(errors="replace")), color=True)
