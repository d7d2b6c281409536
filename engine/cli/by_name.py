"""Ask something of jobs by name: what is wrong with one of them is told, and the next one asked."""

import getpass
import socket
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.cli.output import echo, echo_error
from engine.errors import ApiError, BrokenRecordError, UnauthorizedError, UsageError
from engine.refs import JobKey

if TYPE_CHECKING:
    from engine.cluster.client import Client
    from engine.decide.record import Record


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


def require_names_or(flags: str, names: Iterable[str], *, selected: bool) -> None:
    """Errors: UsageError unless there are names of jobs or one of `flags`, and not both."""
    named = any(True for _ in names)
    if named and selected:
        raise UsageError(f"name jobs or give {flags}, not both")
    if not named and not selected:
        raise UsageError("no job is named", hint=f"name one, or give {flags}")


def select_jobs(
    client: "Client", namespace: str, selector: str, wanted: Callable[["Record"], bool]
) -> tuple[str, ...]:
    """Names, as they are printed, of the jobs in a namespace ("" for all) whose record is `wanted`.

    Records that can't be read are reported, and left alone. Errors: those of the list.
    """
    from engine.cluster.records import list_records  # noqa: PLC0415 - --help needs no cluster

    listed = list_records(client, namespace, selector)
    for _, error in sorted(listed.invalid.items()):
        echo_error(error)
    found = tuple(str(key) for key, record in sorted(listed.items.items()) if wanted(record))
    if not found:
        echo("no such jobs", err=True)
    return found


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


def who() -> str:
    """Who asks, as records say it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
