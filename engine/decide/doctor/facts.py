"""What was found out about a cluster, and what is concluded from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from engine.decide.lease import LeaseObject
from engine.podsecurity import Level as PodSecurityLevel
from engine.refs import Right

Object = Mapping[str, Any]


class Level(StrEnum):
    """How bad a finding is."""

    OK = "OK"
    """Nothing is wrong, or nobody can tell."""
    DEGRADED = "degraded"
    """The engine works, and something is lost."""
    FAILED = "failed"
    """The engine can't work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line."""

    check: str
    """What was looked at."""
    level: Level
    """How bad it is."""
    message: str
    """What was found; where something is lost, what."""
    remedy: str = ""
    """What to do about it."""
    namespace: str = ""
    """Where; "" for the whole cluster."""


@dataclass(frozen=True, slots=True)
class NamespaceFacts:
    """Of one namespace; None where it could not be read."""

    name: str
    """The namespace."""
    namespace: Object | None = None
    """The object itself."""
    is_missing: bool = False
    """Whether it is certain that there is none."""
    rights: frozenset[Right] = frozenset()
    """Those of the features that we have in it."""
    quotas: Sequence[Object] | None = None
    """Its ResourceQuotas."""
    limit_ranges: Sequence[Object] | None = None
    """Its LimitRanges."""
    registry_secrets: frozenset[str] | None = None
    """Names of its Secrets of the type kubernetes.io/dockerconfigjson."""
    pull_secrets: frozenset[str] | None = None
    """Those that its default service account names."""
    lease: LeaseObject | None = None
    """The Lease of the source."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the checks go by."""

    server: str
    """The API server's address."""
    seconds: float
    """How long its first answer took."""
    version: tuple[int, int] | None
    """Its release; None if it doesn't tell."""
    oldest: tuple[int, int]
    """The oldest one that the engine works with."""
    skew: float
    """Seconds that the server's clock is ahead of ours."""
    now: datetime
    """The server's time."""
    source: str
    """The source that is asked about."""
    pod_security: PodSecurityLevel
    """What the operator's configuration holds pods to."""
    namespaces: tuple[NamespaceFacts, ...]
    """Those that were asked about."""
    cluster_rights: frozenset[Right] = field(default=frozenset())
    """Those of the features that we have in all namespaces."""
