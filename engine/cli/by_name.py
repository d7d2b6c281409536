"""Ask something of jobs by name: what is wrong with one of them is told, and the next one asked."""

import getpass
import socket
import sys
from collections.abc import Callable, Iterable

from engine.cli.output import echo, echo_error
from engine.errors import BrokenRecordError, UsageError
from engine.refs import JobKey


def job_key(name: str, namespace: str) -> JobKey:
    """The job that `name` says: as it is printed, `ci/build`, or in `namespace`.

    Errors: UsageError for what can't be a job's name.
    """
    before, slash, after = name.rpartition("/")
    if not after or "/" in before or (slash and not before):
        raise UsageError("name a job as it is printed, such as ci/build", where=name)
    return JobKey(before or namespace, after)


def ask_each(namespace: str, names: Iterable[str], ask: Callable[[JobKey], str]) -> None:
    """Print what `ask` says of each job, and leave with the highest exit code.

    Errors: what isn't one job's alone.
    """
    codes = []
    for name in names:
        try:
            key = job_key(name, namespace)
            echo(f"{key}: {ask(key)}")
        except (UsageError, BrokenRecordError) as error:
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
