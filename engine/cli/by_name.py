"""Change jobs by name: an error of one is reported, and the others are changed all the same."""

import getpass
import socket
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.cli.options import connect
from engine.cli.output import echo, echo_error
from engine.cluster.client import Client
from engine.cluster.discovery import check_server_version
from engine.cluster.records import list_records
from engine.errors import ApiError, BrokenRecordError, UnauthorizedError, UsageError
from engine.lifecycle.record import Record
from engine.refs import JobKey

if TYPE_CHECKING:
    from engine.cluster.connect import Connection


def job_key(name: str, given: str, default: str) -> JobKey:
    """The job that `name` says: as it is printed, `ci/build`, or in the namespace that is `given`
    with -n, or else in the `default` one.

    Errors: UsageError for what can't be a job's name, or is in another namespace than -n says.
    """
    before, slash, after = name.rpartition("/")
    if not after or "/" in before or (slash and not before):
        raise UsageError("name a job as it is printed, such as ci/build", where=name)
    if before and given not in ("", before):
        raise UsageError(f"-n names another namespace: {given}", where=name)
    return JobKey(before or given or default, after)


def connect_to_write(kubeconfig: str, context: str) -> "Connection":
    """Errors: those of `connect` and of `check_server_version`."""
    connection = connect(kubeconfig, context)
    check_server_version(connection.client)
    return connection


def ask_selected(
    flag: str,
    wanted: Callable[[Record], bool],
    ask: Callable[[Client, JobKey], str],
    *,
    every: bool,
    jobs: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Ask the jobs that are named or, with `flag`, which makes it `every` one, or -l, those whose
    record is `wanted`. Records that can't be read are reported, and left alone.

    Errors: UsageError unless it is one of the two; those of `connect_to_write` and `ask_each`.
    """
    if jobs and (every or selector):
        raise UsageError(f"name jobs or give {flag} or -l, not both")
    if not jobs and not every and not selector:
        raise UsageError("no job is named", hint=f"name one, or give {flag} or -l")
    connection = connect_to_write(kubeconfig, context)
    client, default = connection.client, connection.namespace
    if not jobs:
        where = "" if all_namespaces else namespace or default
        listed = list_records(client, where, selector)
        for _, error in sorted(listed.invalid.items()):
            echo_error(error)
        jobs = tuple(str(key) for key, record in sorted(listed.items.items()) if wanted(record))
        if not jobs:
            echo("no such jobs", err=True)
    ask_each(namespace, default, jobs, lambda key: ask(client, key))


def ask_each(given: str, default: str, names: Iterable[str], ask: Callable[[JobKey], str]) -> None:
    """Print what `ask` says of each job, and leave with the highest exit code.

    Errors: what isn't one job's alone.
    """
    codes = []
    for name in dict.fromkeys(names):
        try:
            key = job_key(name, given, default)
            echo(f"{key}: {ask(key)}")
        except UnauthorizedError:
            raise
        except (UsageError, BrokenRecordError, ApiError) as error:
            echo_error(error)
            codes.append(error.exit_code)
    sys.exit(max(codes, default=0))


def current_user() -> str:
    """As records name the user who asked."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
