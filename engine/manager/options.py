"""What an engine that stays is asked to do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.telemetry.events import Emit
from engine.telemetry.redact import Redactor


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """Times are seconds. `namespace` is where the source's Lease is kept.

    `prune` says whether jobs whose spec is gone are removed, `allow_empty` whether that may be
    all of them. `waits` is leader election: to wait for the Lease rather than to refuse.
    """

    source: str
    namespace: str
    identity: str
    concurrency: int = 16
    prune: bool = False
    allow_empty: bool = False
    prune_interval: float = 60.0
    waits: bool = False
    lease_duration: float = 15.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the manager gets from outside: the process's environment, and who listens.

    `on_turn` hears the seconds of each turn and the class of its error, `on_wait` for how many
    seconds a job was ready before a worker took it.
    """

    environment: Mapping[str, str]
    redactor: Redactor
    emit: Emit
    on_turn: Callable[[float, str], None]
    on_wait: Callable[[float], None]
