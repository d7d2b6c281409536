"""What storage holds: one version of one object, and one step from a version to the next."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Json, Obj

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def encode(value: Json) -> bytes:
    """Compact UTF-8 JSON; a lone surrogate becomes ``?`` as nothing else could carry it."""
    return _to_json(value).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored version. ``obj`` is never mutated; ``thaw`` gives a copy that may be."""

    kind: Kind
    obj: Obj
    raw: bytes
    rv: int

    @property
    def name(self) -> str:
        """As in its metadata."""
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """As in its metadata; "" for what is in none."""
        return str(self.obj["metadata"].get("namespace", ""))

    @property
    def uid(self) -> str:
        """As in its metadata."""
        return str(self.obj["metadata"]["uid"])

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.namespace, self.name)

    def thaw(self) -> Obj:
        """A copy that may be changed."""
        copy: Obj = json.loads(self.raw)
        return copy


@dataclass(frozen=True)
class Change:
    """ADDED, MODIFIED or DELETED, with the version before it where there was one."""

    type: str
    entry: Entry
    previous: Entry | None

    @cached_property
    def line(self) -> bytes:
        """The watch event for who asked for whole objects; shared by all its watches."""
        return event_line(self.type, self.entry.raw)


def event_line(kind: str, raw: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"
