"""Ask something of jobs by name: what is wrong with one of them is told, and the next one asked."""

import sys
from collections.abc import Callable, Iterable

from engine.cli.output import echo, echo_error
from engine.errors import BrokenRecordError, UsageError
from engine.refs import JobKey


def ask_each(namespace: str, names: Iterable[str], ask: Callable[[JobKey], str]) -> None:
    """Print what `ask` says of each job, and leave with the highest exit code.

    Errors: what isn't one job's alone.
    """
    codes = []
    for name in names:
        key = JobKey(namespace, name)
        try:
            echo(f"{key}: {ask(key)}")
        except (UsageError, BrokenRecordError) as error:
            echo_error(error)
            codes.append(error.exit_code)
    sys.exit(max(codes, default=0))
