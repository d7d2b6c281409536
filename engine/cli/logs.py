"""`engine logs`: the output of a job's containers."""

import sys

import click

from engine.cli import options
from engine.cli.by_name import job_key
from engine.cli.output import echo, sanitize_log
from engine.inspect.logs import JobLogs


@options.verb(
    "engine logs ci/build -f",
    "engine logs build --attempt 1 --tail 50",
    params=(
        click.Argument(["job"], shell_complete=options.complete_jobs),
        options.option("-f", "--follow", is_flag=True, help="Go on until the job is over."),
        options.option(
            "-c",
            "--container",
            default="",
            help="Container; default: the init container that runs or has failed, else main.",
        ),
        options.option("--attempt", type=click.IntRange(min=1), help="Number of the attempt."),
        options.option(
            "--tail", type=click.IntRange(min=0), help="Begin with the last so many lines."
        ),
        options.JOBS_NAMESPACE,
        *options.CLUSTER,
    ),
)
def command(
    job: str,
    follow: bool,
    container: str,
    attempt: int | None,
    tail: int | None,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Print the output of a job's containers.

    JOB is named as it is printed, ci/build, or by its name in the namespace of -n. Without
    --attempt the log is that of the newest one; --follow goes on with every later one.
    """
    connection = options.connect(kubeconfig, context)
    key = job_key(job, namespace, connection.namespace)
    logs = JobLogs(connection.client, key, container, attempt, tail)
    last = ""

    def on_wait(words: str) -> None:
        nonlocal last
        if words != last:
            echo(f"{key}: {words}", err=True)
        last = words

    rest = b""
    for piece in logs.follow(on_wait) if follow else logs.read():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            _print_line(line)
        sys.stdout.flush()
    if rest:
        _print_line(rest)


def _print_line(line: bytes) -> None:
    click.echo(sanitize_log(line.decode(errors="replace")), color=True)
