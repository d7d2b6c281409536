"""Change jobs by name: an error of one is reported, and the others are changed all the same."""

import getpass
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from engine.cli.options import connect
from engine.cli.output import echo, echo_error, pluralise
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


def connect_to_write() -> "Connection":
    """Errors: those of `connect` and of `check_server_version`."""
    connection = connect()
    check_server_version(connection.client)
    return connection


class Selection(Struct, frozen=True):
    """The jobs that a command is for: SELECTED_JOBS of `options.py`."""

    jobs: tuple[str, ...]
    namespace: str
    all_namespaces: bool
    selector: str
    source: str | None
    """Where no job is named: the jobs of this source alone."""

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """By the parameters of a command, which are taken out of those that are `given`."""
        return cls(**{name: given.pop(name) for name in cls.__struct_fields__})

    def require(self, flags: str, *, every: object) -> None:
        """Errors: UsageError unless jobs are named or, with one of `flags` or -l, selected."""
        is_given = bool(every or self.selector)
        if self.jobs and is_given:
            raise UsageError(f"name jobs or give {flags} or -l, not both")
        if not (self.jobs or is_given):
            raise UsageError("no job is named", hint=f"name one, or give {flags} or -l")

    def namespaces(self, home: str) -> tuple[str, ...]:
        """Where jobs that aren't named are looked for; `home` is the context's namespace."""
        return ("",) if self.all_namespaces else (self.namespace or home,)

    def records(
        self, client: Client, namespaces: Iterable[str], wanted: Callable[[Record], bool]
    ) -> list[Record]:
        """The records of `source` that are `wanted`; those that can't be read are reported.

        Errors: those of the lists.
        """
        found: list[Record] = []
        for place in namespaces:
            listed = list_records(client, place, self.selector)
            for _, error in sorted(listed.invalid.items()):
                echo_error(error)
            records = (record for _, record in sorted(listed.items.items()))
            found += (r for r in records if self.source in (None, r.source) and wanted(r))
        if not found:
            echo("no such jobs", err=True)
        return found

    def ask(
        self,
        connection: "Connection",
        wanted: Callable[[Record], bool],
        ask: Callable[[JobKey], str],
        namespaces: Iterable[str] = (),
    ) -> None:
        """`ask_each` of the jobs that are named, or else of those whose record is `wanted`.

        How many each source has of these is said. Errors: those of `records` and of `ask_each`.
        """
        names, home = self.jobs, connection.namespace
        if not names:
            places = namespaces or self.namespaces(home)
            found = self.records(connection.client, places, wanted)
            names = tuple(str(record.key) for record in found)
            sources = sorted(Counter(record.source for record in found).items())
            if of_each := ", ".join(f"{name} ({count})" for name, count in sources):
                echo(f"{pluralise(len(names), 'job')} of source {of_each}", err=True)
        ask_each(self.namespace, home, names, ask)


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
