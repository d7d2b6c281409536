"""What can be said of an object that carries a TTL; each with its reason in words."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Delete:
    """Its time is over."""

    reason: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Not yet; `until` is None for what goes together with its owner."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Protected:
    """Somebody wants it kept, whatever its age."""

    reason: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """Nobody can tell what its annotations mean, so it stays."""

    reason: str


@dataclass(frozen=True, slots=True)
class Deleting:
    """It is on its way already; `stuck` when its time to go is over and a finalizer holds it."""

    reason: str
    stuck: bool = False


Verdict = Delete | Keep | Protected | Invalid | Deleting
