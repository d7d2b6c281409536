"""Change jobs by name: an error of one is reported, and the others are changed all the same."""

import getpass
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.cli.options import connect
from engine.cli.output import echo, echo_error, pluralise
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


def require_selection(flags: str, jobs: tuple[str, ...], selector: str, *, every: bool) -> None:
    """Errors: UsageError unless jobs are named or, with one of `flags` or -l, selected."""
    if jobs and (every or selector):
        raise UsageError(f"name jobs or give {flags} or -l, not both")
    if not jobs and not every and not selector:
        raise UsageError("no job is named", hint=f"name one, or give {flags} or -l")


def ask_selected(
    connection: "Connection",
    wanted: Callable[[Record], bool],
    ask: Callable[[JobKey], str],
    *,
    jobs: tuple[str, ...],
    namespace: str,
    namespaces: Iterable[str],
    selector: str,
) -> None:
    """Ask the jobs that are named, or those in `namespaces` whose record is `wanted`. How many each
    source has of them is said. Records that can't be read are reported, and left alone.

    Errors: those of the lists and of `ask_each`.
    """
    sources = Counter[str]()
    if not jobs:
        for place in namespaces:
            listed = list_records(connection.client, place, selector)
            for _, error in sorted(listed.invalid.items()):
                echo_error(error)
            found = [record for _, record in sorted(listed.items.items()) if wanted(record)]
            jobs = (*jobs, *(str(record.key) for record in found))
            sources.update(record.source for record in found)
        of_each = ", ".join(f"{name} ({sources[name]})" for name in sorted(sources))
        said = f"{pluralise(len(jobs), 'job')} of source {of_each}"
        echo(said if jobs else "no such jobs", err=True)
    ask_each(namespace, connection.namespace, jobs, ask)


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
