"""Typed events: the engine emits them, printers turn them into lines, tables or JSON."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any

from engine.api.model import PullClass
from engine.errors import Diagnostic
from engine.refs import JobKey, Ref
from engine.status.outcome import Reason, State

Text = Annotated[str, "free text"]
"""What a container, a registry, a server or an exception said; names, states and reasons are not.

It may hold anything, secrets included: printers mask it before they make something of it.
"""


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A job is in a new state."""

    key: JobKey
    """The job."""
    state: State
    """The state."""
    reason: Reason | None = None
    """Why, once it is final."""
    message: Text = ""
    """The cause, where there is one."""
    attempt: int = 0
    """Number of the attempt; 0 if there was none yet."""
    queued_at: datetime | None = None
    """Since when it waits for its turn, while it is Queued."""


@dataclass(frozen=True, slots=True)
class PullPolicyFallback:
    """A container's next attempt uses another pull policy, or the same once more."""

    key: JobKey
    """The job."""
    attempt: int
    """Number of the attempt that failed."""
    container: str
    """The container that could not get its image, or has the image and policy of one that could
    not.
    """
    image: str
    """The image."""
    before: str
    """The policy it had."""
    after: str
    """The policy it gets."""
    message: Text
    """The registry's own words, or which container failed."""
    pull_class: PullClass = PullClass.OTHER
    """What was wrong, as far as they tell."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt ended badly, whether or not there is to be another one.

    A pull failure that another policy answers is a PullPolicyFallback instead.
    """

    key: JobKey
    """The job."""
    attempt: int
    """The attempt's number."""
    pod: str
    """The pod's name."""
    reason: Reason
    """How it ended."""
    message: Text
    """The first real cause."""


@dataclass(frozen=True, slots=True)
class PodRemoved:
    """The engine has asked for the deletion of a pod."""

    key: JobKey
    """The job."""
    pod: str
    """The pod's name."""
    why: Text
    """The reason, for people."""


@dataclass(frozen=True, slots=True)
class JobUnchanged:
    """The job's run was over before; nothing was written for it."""

    key: JobKey
    """The job."""
    state: State
    """How the run ended."""


@dataclass(frozen=True, slots=True)
class DependentRestored:
    """A Secret or ConfigMap was deleted before its pod had started, and is there again."""

    key: JobKey
    """The job."""
    ref: Ref
    """What was created anew."""


@dataclass(frozen=True, slots=True)
class LabelsChanged:
    """Somebody changed labels of the engine's on a pod of ours that has not been recorded as over.

    They were put back, or that was refused, and the pod is asked for by its name.
    """

    key: JobKey
    """The job."""
    pod: str
    """The pod's name."""
    labels: tuple[str, ...]
    """Which labels."""
    refused: str = ""
    """Why they can't be put back; "" if they were."""


@dataclass(frozen=True, slots=True)
class PodIgnored:
    """A pod is named and labelled as one of the job's, but in no record; it is left alone."""

    key: JobKey
    """The job."""
    pod: str
    """The pod's name."""


@dataclass(frozen=True, slots=True)
class ErrorReported:
    """The cluster said no or nothing."""

    key: JobKey | None
    """The job; None if it is not about one."""
    message: Text
    """Its words, or the error."""
    retrying: bool
    """Whether the engine goes on trying."""


@dataclass(frozen=True, slots=True)
class InternalError:
    """Something raised what it never should have: a defect, contained so that the rest goes on."""

    key: JobKey | None
    """The job whose problem alone it is, if it is one's."""
    component: str
    """The thread or part of the engine that it happened in."""
    kind: str
    """The exception's class."""
    message: Text
    traceback: Text
    """Of many lines."""
    retrying: bool = True


@dataclass(frozen=True, slots=True)
class Notice:
    """Something worth saying once."""

    message: Text
    """The words."""
    detail: bool = False
    """Whether only -v tells it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is that takes long; for who looks on, and in no log."""

    message: Text
    """What, and how much of it; "" once it is over."""


@dataclass(frozen=True, slots=True)
class SpecsRead:
    """The specs were read, all of them."""

    files: int
    """Files that there are now."""
    jobs: int
    """Jobs that there are now."""
    added: int
    """Jobs that were not there before."""
    changed: int
    """Jobs whose spec is another."""
    removed: int
    """Jobs that are gone."""


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """Something is wrong with a spec file; told once for as long as it stays so."""

    problem: Diagnostic | Text
    """The finding, or what is wrong with all of them."""


@dataclass(frozen=True, slots=True)
class SpecFixed:
    """Nothing is wrong any more with a file that had problems."""

    file: str
    """The file's name in messages."""
    gone: bool = False
    """Because it is no longer there."""


@dataclass(frozen=True, slots=True)
class JobUnmanaged:
    """The engine no longer manages this job: its spec was removed."""

    key: JobKey
    """The job."""


@dataclass(frozen=True, slots=True)
class JobGone:
    """The job has a record and no spec any more: it will be removed, with everything of it."""

    key: JobKey
    """The job."""
    source: str
    """The source that the spec was in."""


@dataclass(frozen=True, slots=True)
class ObjectPruned:
    """What the pruning rule did to an object, or why it could not."""

    ref: Ref
    """The object."""
    action: str
    """What was done: deleted, failed and so on."""
    reason: Text
    """Why."""


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """This engine began or ceased to lead."""

    leads: bool
    """Whether it leads now."""
    holder: str
    """Who leads now; "" if nobody is known to."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Every cache has been filled for the first time: from now on the engine keeps up."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """The engine has been asked to end, or has to."""

    reason: Text
    """Why."""


Event = (
    StateChanged
    | PullPolicyFallback
    | AttemptFailed
    | PodRemoved
    | JobUnchanged
    | DependentRestored
    | LabelsChanged
    | PodIgnored
    | ErrorReported
    | InternalError
    | Notice
    | Progress
    | SpecsRead
    | SpecProblem
    | SpecFixed
    | JobUnmanaged
    | JobGone
    | ObjectPruned
    | LeaderChanged
    | Ready
    | Stopping
)
Emit = Callable[[Event], None]
_FREE_TEXT = (Text, Diagnostic | Text)


def map_text(event: Event, change: Callable[[str], str]) -> Event:
    """`event` with `change` applied to its free text, and to nothing else."""
    changed: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, Diagnostic):
            changed[field.name] = value.map_text(change)
        elif field.type in _FREE_TEXT and value:
            changed[field.name] = change(value)
    return replace(event, **changed) if changed else event
