"""Typed events: the engine emits them, printers turn them into lines, tables or JSON."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from engine.api.model import PullClass
from engine.errors import Diagnostic
from engine.refs import JobKey, Ref
from engine.status.outcome import Reason, State
from engine.telemetry.redact import Redactor
from engine.values import Text, map_text


class Event(Struct, frozen=True):
    """What the classes below have in common: something that happened."""


class MaskedEvent(Struct, frozen=True):
    """An event with no free text that wasn't masked: only such a one is printed."""

    event: Event


class StateChanged(Event, frozen=True):
    """A job is in a new state."""

    key: JobKey
    state: State
    reason: Reason | None = None
    """Why, once it is final."""
    message: Text = ""
    """The cause, where there is one."""
    attempt: int = 0
    """0 if there was none yet."""
    queued_at: datetime | None = None
    """Since when a Queued job waits."""
    started_for: str = ""
    """Why its run, or another attempt of it, starts."""


class PullPolicyFallback(Event, frozen=True):
    """A container's next attempt uses another pull policy, or the same once more."""

    key: JobKey
    attempt: int
    """The one that failed."""
    container: str
    """The container that could not get its image, or has the image and policy of one that could
    not.
    """
    image: str
    before: str
    after: str
    message: Text
    """The registry's own words, or which container failed."""
    pull_class: PullClass = PullClass.OTHER


class AttemptFailed(Event, frozen=True):
    """An attempt ended badly, whether or not there is to be another one.

    A pull failure that another policy answers is a PullPolicyFallback instead.
    """

    key: JobKey
    attempt: int
    pod: str
    reason: Reason
    message: Text
    """The first real cause."""


class LogEnd(Event, frozen=True):
    """The last lines of a container that failed."""

    key: JobKey
    attempt: int
    """The attempt's number."""
    pod: str
    container: str
    text: Text
    """As the container wrote them, of many lines."""

    @property
    def lines(self) -> list[str]:
        """Each alone."""
        return self.text.splitlines()


class JobUnchanged(Event, frozen=True):
    """The job's run was over before; nothing was written for it."""

    key: JobKey
    state: State


class ErrorReported(Event, frozen=True):
    """The API server refused a request, or did not answer."""

    key: JobKey | None
    """None if it is not about one job."""
    message: Text
    retrying: bool


class InternalError(Event, frozen=True):
    """An exception that no part of the engine expects: a defect, contained."""

    key: JobKey | None
    """None if it is not about one job."""
    component: str
    """The thread or part of the engine."""
    kind: str
    """The exception's class."""
    message: Text
    traceback: Text
    """Of many lines."""
    retrying: bool = True


class Notice(Event, frozen=True):
    """A note to the user that no program acts on."""

    message: Text
    about: JobKey | str = "note"
    """What its line begins with: a job, a file, or what the engine does."""
    detail: bool = False
    """Printed with -v only."""
    warning: bool = False


class SpecsRead(Event, frozen=True):
    """All specs were read; the counts compare with the reading before."""

    files: int
    jobs: int
    added: int
    changed: int
    removed: int


class SpecProblem(Event, frozen=True):
    """A spec file is invalid; reported once for as long as it is."""

    problem: Diagnostic | Text
    """A finding in one file, or a problem of the whole source."""


class JobUnmanaged(Event, frozen=True):
    """The engine no longer manages this job: its spec was removed."""

    key: JobKey


class ObjectPruned(Event, frozen=True):
    """The pruning rule settled an object."""

    ref: Ref
    action: str
    """deleted, failed and so on."""
    reason: Text


class LeaderChanged(Event, frozen=True):
    """This engine began or ceased to hold a Lease of its source."""

    leads: bool
    holder: str
    """An engine that holds one; "" if none is known."""


class Ready(Event, frozen=True):
    """Every cache has been filled for the first time."""


Emit = Callable[[Event], None]


def mask_event(event: Event, redactor: Redactor) -> MaskedEvent:
    """`event` with the secrets of its job masked; where it is about no job, with all of them."""
    key = getattr(event, "key", None) or getattr(event, "about", None)
    return MaskedEvent(map_text(event, redactor.of(key if isinstance(key, JobKey) else None)))
