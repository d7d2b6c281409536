"""Typed events: the engine emits them, printers turn them into lines, tables or JSON."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.api.model import PullClass
from engine.refs import JobKey, Ref
from engine.status.outcome import Reason, State


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A job is in a new state; `message` is the cause, where there is one."""

    key: JobKey
    state: State
    reason: Reason | None = None
    message: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class PullPolicyFallback:
    """A container's next attempt uses another pull policy, or the same once more."""

    key: JobKey
    attempt: int
    container: str
    before: str
    after: str
    message: str
    pull_class: PullClass = PullClass.OTHER


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt ended badly, whether or not there is to be another one.

    A pull failure that another policy answers is a PullPolicyFallback instead.
    """

    key: JobKey
    attempt: int
    pod: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class PodRemoved:
    """The engine has asked for the deletion of a pod."""

    key: JobKey
    pod: str
    why: str


@dataclass(frozen=True, slots=True)
class JobUnchanged:
    """The job's run was over before; nothing was written for it."""

    key: JobKey
    state: State


@dataclass(frozen=True, slots=True)
class DependentRestored:
    """A Secret or ConfigMap was deleted before its pod had started, and is there again."""

    key: JobKey
    ref: Ref


@dataclass(frozen=True, slots=True)
class Trouble:
    """The cluster said no or nothing; `retrying` tells whether the engine goes on trying."""

    key: JobKey | None
    message: str
    retrying: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """Something worth saying once."""

    message: str


@dataclass(frozen=True, slots=True)
class SpecsRead:
    """The specs were read, all of them: `files` and `jobs` there are now, and what that changed."""

    files: int
    jobs: int
    added: int
    changed: int
    removed: int


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """Something is wrong with a spec file; told once for as long as it stays so."""

    problem: str


@dataclass(frozen=True, slots=True)
class SpecMended:
    """Nothing is wrong any more with a file that had problems."""

    file: str


@dataclass(frozen=True, slots=True)
class JobForgotten:
    """The engine looks after this job no longer: its spec is gone."""

    key: JobKey


@dataclass(frozen=True, slots=True)
class ObjectPruned:
    """What the pruning rule did to an object, or why it could not."""

    ref: Ref
    action: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """This engine began or ceased to lead; `holder` is who leads now, "" if nobody is known to."""

    leads: bool
    holder: str


@dataclass(frozen=True, slots=True)
class Ready:
    """Every cache has been filled for the first time: from now on the engine keeps up."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """The engine has been asked to end, or has to."""

    reason: str


Event = (
    StateChanged
    | PullPolicyFallback
    | AttemptFailed
    | PodRemoved
    | JobUnchanged
    | DependentRestored
    | Trouble
    | Notice
    | SpecsRead
    | SpecProblem
    | SpecMended
    | JobForgotten
    | ObjectPruned
    | LeaderChanged
    | Ready
    | Stopping
)
Emit = Callable[[Event], None]
