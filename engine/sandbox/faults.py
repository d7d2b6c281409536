"""Faults by rule: what a real cluster does rarely, done on demand and in a known order."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase

from engine.sandbox.errors import StatusError, conflict


@dataclass(frozen=True, slots=True)
class TooManyRequests:
    """429 with ``Retry-After``; nothing is done."""

    retry_after: int = 1


@dataclass(frozen=True, slots=True)
class ServerError:
    """500, 502, 503 or 504; nothing is done."""

    code: int = 500
    message: str = "a fault of the sandbox"


@dataclass(frozen=True, slots=True)
class Conflict:
    """409 as if another client had written first; nothing is done."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Any Status: an admission webhook's 403, a quota's 409, ..."""

    code: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Latency:
    """The answer comes this many real seconds later (for a list: a slow list)."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LostReply:
    """The request is carried out, then the connection closes without a reply.

    With a ``code`` the reply is that error, as from a server whose storage answers too late.
    """

    code: int = 0


@dataclass(frozen=True, slots=True)
class DropConnection:
    """The connection closes; nothing is done."""


@dataclass(frozen=True, slots=True)
class DropWatch:
    """The watch is cut off after this many events."""

    after_events: int = 0


@dataclass(frozen=True, slots=True)
class ExpireWatch:
    """The watch begins with 410 Expired, as if its version were compacted."""


Effect = (
    TooManyRequests
    | ServerError
    | Conflict
    | Refuse
    | Latency
    | LostReply
    | DropConnection
    | DropWatch
    | ExpireWatch
)


@dataclass(frozen=True, slots=True)
class Fault:
    """When something goes wrong, and what.

    ``resource`` is as in RBAC (``pods``, ``pods/status``); ``verb``, ``resource``, ``name`` and
    ``namespace`` are globs. The first ``skip`` matching requests are left alone, then ``times``
    (None: all) are hit, each with ``probability``.
    """

    effect: Effect
    verb: str = "*"
    resource: str = "*"
    name: str = "*"
    namespace: str | None = None
    times: int | None = 1
    skip: int = 0
    probability: float = 1.0


class Faults:
    """The faults in force."""

    def __init__(self, seed: int = 0) -> None:
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._seen: dict[int, int] = {}
        self._hits: dict[int, int] = {}
        self._rules: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force; returned, so that it can be removed."""
        with self._lock:
            self._rules.append(fault)
            self._seen[id(fault)] = self._hits[id(fault)] = 0
        return fault

    def remove(self, fault: Fault) -> None:
        """Take one fault back."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule is not fault]

    def clear(self) -> None:
        """Take all of them back."""
        with self._lock:
            self._rules.clear()

    def hits(self, fault: Fault) -> int:
        """How many requests the fault has hit so far."""
        return self._hits.get(id(fault), 0)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def effects(self, verb: str, resource: str, namespace: str, name: str) -> list[Effect]:
        """What befalls this request; every rule that matches counts it."""
        with self._lock:
            return [
                rule.effect
                for rule in self._rules
                if _covers(rule, verb, resource, namespace, name) and self._strikes(rule)
            ]

    def _strikes(self, rule: Fault) -> bool:
        self._seen[id(rule)] += 1
        if self._seen[id(rule)] <= rule.skip:
            return False
        if rule.times is not None and self._hits[id(rule)] >= rule.times:
            return False
        if rule.probability < 1 and self._chance.random() >= rule.probability:
            return False
        self._hits[id(rule)] += 1
        return True


def _covers(rule: Fault, verb: str, resource: str, namespace: str, name: str) -> bool:
    return (
        fnmatchcase(verb, rule.verb)
        and fnmatchcase(resource, rule.resource)
        and fnmatchcase(name, rule.name)
        and (rule.namespace is None or fnmatchcase(namespace, rule.namespace))
    )


def refusal(effect: Effect, group: str, resource: str, name: str) -> StatusError | None:
    """The effect as a Status, if it is one."""
    match effect:
        case TooManyRequests(retry_after=seconds):
            message = (
                "the server has received too many requests and has asked us to try again later"
            )
            return StatusError(429, "TooManyRequests", message, {}, retry_after=seconds)
        case ServerError(code=code, message=message):
            reasons = {503: "ServiceUnavailable", 504: "Timeout"}
            return StatusError(code, reasons.get(code, "InternalError"), message, {})
        case Conflict():
            why = (
                "the object has been modified; please apply your changes to the latest version "
                "and try again"
            )
            return conflict(group, resource, name, why)
        case Refuse(code=code, reason=reason, message=message):
            return StatusError(code, reason, message, {"name": name, "kind": resource})
    return None
