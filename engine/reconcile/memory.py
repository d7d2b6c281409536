"""What the engine remembers of a job while it runs; all of it can be found out again."""

from dataclasses import dataclass, field
from datetime import datetime

from engine.api.model import Job
from engine.decide.record import Record
from engine.decide.situation import Refusal
from engine.render.manifests import Manifests
from engine.render.variables import SecretValues
from engine.status.outcome import Outcome

ManifestsKey = tuple[int, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class JobMemory:
    """What the engine remembers of a job while it runs; all of it can be found out again.

    `stale` asks for another preparation at the next turn; `told` is the last trouble that was
    told, `seen` whether the run was found over before. `unanswered` means that a pod may be there
    of which nothing is known: a create was sent, and its answer never came.
    """

    job: Job
    secrets: SecretValues
    record: Record | None = None
    settled: set[str] = field(default_factory=set)
    looked_up: dict[tuple[str, bool], datetime] = field(default_factory=dict)
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
    prepared: bool = False
    stale: bool = False
    seen: bool = False
    unanswered: bool = False
    told: str = ""

    def replace_job(self, job: Job) -> None:
        """Take over another revision of the spec, or the same with other defaults."""
        self.job = job
        self.forget_preparation()
        self.refusal, self.refusals = None, 0
        self.told = ""

    def forget_preparation(self) -> None:
        """Of what was rendered and resolved nothing is left, least of all a secret."""
        self.secrets, self.knows_secrets = SecretValues(), True
        self.manifests, self.prepared, self.stale = None, False, False

    def rest(self) -> None:
        """The run is over: keep no more than tells so."""
        self.forget_preparation()
        for known in (self.settled, self.gone):
            known.clear()
        for told in (self.causes, self.failing_since, self.ends, self.asked, self.looked_up):
            told.clear()
        self.refusal, self.refusals = None, 0
