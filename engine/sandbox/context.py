"""What every part of the sandbox shares: storage, clock, version and the rules of admission."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.sandbox.admission.quota import Quotas
from engine.sandbox.kinds import Kind
from engine.sandbox.schema.types import struct_of
from engine.sandbox.store import Storage

if TYPE_CHECKING:
    from engine.sandbox.clock import Clock
    from engine.sandbox.schema.types import Struct
    from engine.sandbox.values import Json


@dataclass(frozen=True, slots=True)
class Options:
    """What a write's query says, and who writes."""

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Ignore"
    user: str = ""
    warnings: list[str] = field(default_factory=list)


class Context:
    """The server's shared state. Everything that changes objects holds ``storage.lock``."""

    def __init__(self, clock: Clock, minor: int, seed: int = 0) -> None:
        self.clock = clock
        self.minor = minor
        self.storage = Storage()
        self.chance = random.Random(seed)
        self.quotas = Quotas(self.storage, self.call_soon)

    def call_soon(self, action: Json) -> None:
        """Do it at once, but after what is going on now."""
        self.clock.call_later(0, action)

    @staticmethod
    def struct(kind: Kind) -> Struct:
        """The fields that a kind has."""
        return struct_of(kind.api_version, kind.kind)

    @staticmethod
    def new_uid() -> str:
        """A random UID."""
        return str(uuid.uuid4())
