"""Typed events: the engine emits them, printers turn them into lines, tables or JSON."""

from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class PodRemoved:
    key: JobKey
    pod: str
    why: str


@dataclass(frozen=True, slots=True)
class JobUnchanged:
    """The job's run was over before; nothing was written for it."""

    key: JobKey
    state: State


@dataclass(frozen=True, slots=True)
class Drift:
    """What a running pod owns was not as it should be; put back the first time only, if at all."""

    key: JobKey
    ref: Ref
    was_deleted: bool
    repaired: bool


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


Event = StateChanged | PullPolicyFallback | PodRemoved | JobUnchanged | Drift | Trouble | Notice
Emit = Callable[[Event], None]
