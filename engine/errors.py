"""The one tree of errors: every error knows where it happened, why, and what to do about it.

Printers turn an error into one line; nothing else in the engine formats messages for people.
"""

import re
from collections.abc import Callable, Iterable
from enum import IntEnum, StrEnum
from itertools import groupby
from typing import Self

from msgspec import Struct

from engine.values import Text, map_text

MAX_SHOWN = 100
"""Of one file no more diagnostics are shown than can be read."""
END = 2**31
"""The line of a diagnostic about the whole file, which comes last."""

_QUOTA = re.compile("exceeded quota: ([-.0-9a-z]{1,253})")


class ExitCode(IntEnum):
    """Exit codes of the command line; of several outcomes the highest of 1 and 3-7 counts."""

    OK = 0
    """Every job succeeded."""
    JOB_FAILED = 1
    """A job failed on its own: another try ends the same way, unless the job is fixed."""
    INVALID = 2
    """The command line or a spec is wrong; nothing was applied."""
    TIMEOUT = 3
    """--timeout was reached."""
    IMAGE_PULL = 4
    """An image could not be pulled."""
    REFUSED = 5
    """A quota, admission or another owner said no."""
    CLUSTER = 6
    """The cluster can't be reached, forbids it or is too old; or a job's record can't be read."""
    SYSTEM_FAILURE = 7
    """The system ended a job that did not fail itself, so that it is worth another try."""
    INTERRUPTED = 130
    """Ctrl-C."""


class SourceLocation(Struct, frozen=True, order=True):
    """A place in a file; prints as compilers do, `file:line:column`."""

    file: str
    """The file's name as the user gave it."""
    line: int = 0
    """Counts from 1; 0 and END mean the whole file."""
    column: int = 0
    """Counts from 1."""
    field: str = ""
    """In an object of the cluster, which has no lines: the field."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if 0 < self.line < END else self.file


class Severity(StrEnum):
    """Whether a finding stops what was asked for."""

    ERROR = "error"
    WARNING = "warning"


class Diagnostic(Struct, frozen=True):
    """One finding about the input: the unit that validation collects and printers print."""

    where: SourceLocation
    """What it is about."""
    message: Text
    """What is wrong."""
    hint: Text = ""
    """What the reader can do."""
    severity: Severity = Severity.ERROR
    """Whether it stops what was asked for."""

    def __str__(self) -> str:
        warning = "warning: " if self.severity is Severity.WARNING else ""
        return f"{self.where}: {warning}{self.words}"

    @property
    def words(self) -> str:
        """The message, before it the field that it doesn't name, and the hint behind it."""
        field = self.where.field
        is_named = ".".join(field.split(".")[:2]).partition("[")[0] in self.message
        message = self.message if is_named else f"{field}: {self.message}"
        return f"{message}{f' ({self.hint})' if self.hint else ''}"


def in_order(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Each diagnostic once, by its place; of one file MAX_SHOWN, and whether there are others."""
    result: list[Diagnostic] = []
    in_line = sorted(set(found), key=lambda found: (found.where, found.message))
    for file, group in groupby(in_line, lambda found: found.where.file):
        listed = list(group)
        placed = [diagnostic for diagnostic in listed if 0 < diagnostic.where.line < END]
        rest = frozenset(placed[MAX_SHOWN:])
        result += (diagnostic for diagnostic in listed if diagnostic not in rest)
        if rest:
            is_error = any(one.severity is Severity.ERROR for one in rest)
            severity = Severity.ERROR if is_error else Severity.WARNING
            words = "and more problems in this file"
            result.append(Diagnostic(SourceLocation(file, END), words, severity=severity))
    return tuple(result)


def internal_error(file: str, error: Exception) -> Diagnostic:
    """The engine itself stumbles over a file: it is in error, and the others go on.

    What the error says may be a secret; where it was raised is none.
    """
    import traceback  # noqa: PLC0415 - rare

    frame = traceback.extract_tb(error.__traceback__)[-1]
    at = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    message = f"internal error: {type(error).__name__} at {at}"
    return Diagnostic(SourceLocation(file), message, "please report it; other files go on")


class EngineError(Exception):
    """Root of the tree."""

    exit_code: ExitCode = ExitCode.JOB_FAILED
    """What the command line ends with."""
    retryable: bool = False
    """Whether trying again can help."""
    retry_after: float = 0.0
    """Seconds that the server asks to be left alone for, 30 at most; 0 if it doesn't say."""
    cause: str
    """The first real reason."""
    where: SourceLocation | str
    """A place in a file, or the name of an object."""
    hint: str
    """What the reader can do."""

    def __init__(self, cause: str, *, where: SourceLocation | str = "", hint: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.where}: " if str(self.where) else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.cause}{hint}"

    def map_text(self, change: Callable[[str], str]) -> Self:
        """The same error with `change` applied to its words; its place and its kind stay."""
        changed = type(self).__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed.cause, changed.hint = change(self.cause), change(self.hint)
        changed.args = (changed.cause,)
        return changed


class UsageError(EngineError):
    """The command line asks for something that cannot be."""

    exit_code = ExitCode.INVALID


class InvalidInputError(EngineError):
    """Everything that is wrong with the input, collected; nothing has been applied."""

    exit_code = ExitCode.INVALID

    def __init__(self, problems: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems

    def map_text(self, change: Callable[[str], str]) -> Self:
        """The same findings with `change` applied to their words."""
        return type(self)(map_text(self.problems, change))


def no_record(job: str, hint: str = "engine status -A shows all jobs") -> UsageError:
    """A job is named that has no run record: it never ran there, or under another name."""
    return UsageError("there is no record of this job", where=job, hint=hint)


class RenderError(EngineError):
    """A template is missing or broken, or a patch does not fit the manifest it patches."""

    exit_code = ExitCode.INVALID


class OwnershipError(EngineError):
    """An object in the way belongs to another source, or the engine doesn't know its owner; or
    another engine that is alive acts for this source.
    """

    exit_code = ExitCode.REFUSED


class SupersededError(OwnershipError):
    """A run of another revision of the spec began after this process had read its own."""


class ClusterError(EngineError):
    """The cluster can't be reached, forbids it or is too old; or there is no usable kubeconfig."""

    exit_code = ExitCode.CLUSTER


class ClaimedError(OwnershipError):
    """A job of this name has its record in the other store: one name, one owner."""

    exit_code = ExitCode.INVALID


class BrokenRecordError(ClusterError):
    """A run record holds what the engine can't have written: it stops its own job alone."""

    def __init__(
        self, namespace: str, name: str, cause: str, kind: str = "configmap", of: str = ""
    ) -> None:
        """`of` is the subresource that holds the record."""
        place = f"-n {namespace} {kind} {name}"
        super().__init__(
            f"this run record can't be read: {cause}",
            where=f"{kind}/{namespace}/{name}",
            hint=f"put back what it said, with kubectl edit {place}{of};"
            " until then the job is neither started nor ended, and nothing of it is deleted;"
            f" if that is lost, kubectl delete {place} has the job run again",
        )


class UnreachableError(ClusterError):
    """No answer from the API server: refused, timed out, or the connection broke."""

    retryable = True


class ApiError(ClusterError):
    """The API server answered with a Status that is not a success."""

    status: int
    """The HTTP code."""
    reason: str
    """The machine-readable reason of the Status object."""

    def __init__(
        self, cause: str, *, status: int, reason: str, retry_after: float = 0.0, **words: str
    ) -> None:
        super().__init__(cause, **words)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class UnauthorizedError(ApiError):
    """401: the credentials are missing, wrong or expired."""


class ForbiddenError(ApiError):
    """403 from authorization: the user may not do this."""


class NotFoundError(ApiError):
    """404: the object, its namespace, or its kind is not there."""


class AlreadyExistsError(ApiError):
    """409 on create: an object of this name is there already, made since we looked."""

    retryable = True


class ConflictError(ApiError):
    """409 on a write or delete: the object is not what the precondition says."""

    retryable = True


class ExpiredError(ApiError):
    """410: a resourceVersion or continue token is too old."""

    retryable = True


class BusyError(ApiError):
    """429 or 5xx: the server is overloaded or broken for now; or a write was refused by what
    answers in its place.
    """

    retryable = True


class QuotaExceededError(ApiError):
    """403 from the quota plugin: there is no room now."""

    exit_code = ExitCode.REFUSED

    @property
    def quota(self) -> str:
        """The quota's name, as far as the server says it."""
        return "".join(_QUOTA.findall(self.cause)[:1])


class AdmissionRefusedError(ApiError):
    """The server looked at the manifest and said no: a webhook, a policy, or validation (422)."""

    exit_code = ExitCode.REFUSED
