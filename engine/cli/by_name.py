"""Change jobs by name: an error of one is reported, and the others are changed all the same."""

import getpass
import socket
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.cli.output import echo, echo_error, echo_note
from engine.errors import ApiError, BrokenRecordError, UnauthorizedError, UsageError
from engine.refs import JobKey

if TYPE_CHECKING:
    from engine.cluster.client import Client
    from engine.cluster.connect import Connection
    from engine.lifecycle.record import Record


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSelection:
    """Which jobs are meant: `options.selected_jobs` and `options.cluster`."""

    jobs: tuple[str, ...]
    namespace: str
    all_namespaces: bool
    selector: str
    kubeconfig: str
    context: str

    def ask_each(
        self,
        flag: str,
        wanted: Callable[["Record"], bool],
        ask: Callable[["Client", JobKey], str],
        *,
        given: bool,
    ) -> None:
        """Ask the jobs that are named or, with `flag`, if that was `given`, or -l, those whose
        record is `wanted`.

        Errors: UsageError unless it is one of the two; those of `connect_to_write` and `ask_each`.
        """
        selected = given or bool(self.selector)
        if self.jobs and selected:
            raise UsageError(f"name jobs or give {flag} or -l, not both")
        if not self.jobs and not selected:
            raise UsageError("no job is named", hint=f"name one, or give {flag} or -l")
        connection = connect_to_write(self.kubeconfig, self.context)
        client, default = connection.client, connection.namespace
        where = "" if self.all_namespaces else self.namespace or default
        names = self.jobs or _select(client, where, self.selector, wanted)
        ask_each(self.namespace, default, names, lambda key: ask(client, key))


def connect_to_write(kubeconfig: str, context: str) -> "Connection":
    """Errors: those of `connect` and of `check_server_version`."""
    from engine.cluster.connect import connect  # noqa: PLC0415 - --help needs no cluster
    from engine.cluster.discovery import check_server_version  # noqa: PLC0415

    connection = connect(kubeconfig, context, on_silence=echo_note)
    check_server_version(connection.client)
    return connection


def _select(
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


def current_user() -> str:
    """As records name the user who asked."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
