"""What the engine remembers of a job while it runs; all of it can be found out again."""

from dataclasses import dataclass, field
from datetime import datetime

from engine.decide.record import Record
from engine.decide.situation import Refusal
from engine.refs import Ref
from engine.render.manifests import Manifests
from engine.render.variables import SecretValues
from engine.spec.model import Job
from engine.status.outcome import Outcome

ManifestsKey = tuple[int, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class JobMemory:
    """What the engine remembers of a job while it runs; all of it can be found out again."""

    job: Job
    secrets: SecretValues
    record: Record | None = None
    settled: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    repaired: set[Ref] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    refusal: Refusal | None = None
    refusals: int = 0
    causes: dict[tuple[str, str], str] = field(default_factory=dict)
    failing_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    ends: dict[str, Outcome] = field(default_factory=dict)
    asked: dict[str, datetime] = field(default_factory=dict)
    knows_secrets: bool = True
    manifests: tuple[ManifestsKey, Manifests] | None = None
    writes: int = 0
