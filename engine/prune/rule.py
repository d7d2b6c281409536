"""The rule itself. Only what carries a TTL is judged at all, and a record whose spec is gone."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from engine.durations import format_duration
from engine.lifecycle.orphan import orphaned_since
from engine.lifecycle.state import Pod, held_by, is_finished
from engine.prune.result import PruneAction
from engine.prune.ttl import quote, read_term
from engine.status.start import scheduled_at
from engine.times import parse_time
from engine.wellknown import (
    EXPIRES_AT,
    FOREIGN_TTLS,
    HOLD,
    OPT_IN_TTLS,
    ORPHANED_SINCE,
    RESERVED_PREFIX,
    SCHEDULING,
    TTL,
    TTL_FROM,
)

_PROPAGATION = frozenset({"foregroundDeletion", "orphan"})
_MAX_REASON = 500
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said of an object that carries a TTL."""

    action: ClassVar[PruneAction] = PruneAction.KEPT
    """What becomes of an object that is not deleted."""
    reason: str
    """In words."""


class Delete(Verdict):
    """Its time is over."""


class Keep(Verdict):
    """Not yet."""


class Protected(Verdict):
    """A user has protected it, whatever its age."""

    action = PruneAction.PROTECTED


class Invalid(Verdict):
    """Its annotations can't be read, so it stays."""

    action = PruneAction.INVALID


class Deleting(Verdict):
    """It is on its way already."""


class Stuck(Verdict):
    """It is on its way, its time to go is over, and a finalizer holds it."""

    action = PruneAction.FAILED


def evaluate(
    metadata: Mapping[str, Any],
    now: datetime,
    foreign: Collection[str] = FOREIGN_TTLS,
    pod: Pod | None = None,
) -> Verdict | None:
    """Verdict on an object with this metadata; None if it carries no TTL.

    `foreign` names the annotations of other cleaners that count; on objects of the engine none
    does. An owner is taken to live: the garbage collector sees to what lost its owner. Of what
    `counts_from_scheduling` the whole `pod` is needed; without it the verdict is that of its age.
    """
    annotations = metadata.get("annotations") or {}
    if _is_engines(metadata):
        foreign = ()
    if not any(name in annotations for name in (TTL, EXPIRES_AT, *foreign)):
        return None
    try:
        if metadata.get("deletionTimestamp"):
            return _deleting(metadata, now)
        held = _is_on_hold(annotations)
        term = read_term(annotations, foreign)
        created = parse_time(metadata.get("creationTimestamp"))
        expiry = term.expiry(created) if term and created else None
    except (ValueError, OverflowError) as error:
        return Invalid(str(error)[:_MAX_REASON])
    if term is None or created is None:
        return Invalid("it has no creation time")
    if held:
        return Protected(f"{HOLD} is true")
    owner = owner_of(metadata)
    if owner is not None:
        return Keep(f"goes with its owner {owner['kind'].lower()}/{owner['name']}")
    if expiry is None:
        return Protected("ttl forever")
    is_told = EXPIRES_AT in annotations
    if pod is not None and counts_from_scheduling(metadata) and not is_told:
        began = scheduled_at(pod) or (created if is_finished(pod) else None)
        if began is None:
            return Protected(held_by(pod) or "it has no node yet, from which on its TTL counts")
        created, expiry = began, term.expiry(began) or expiry
    words = term.describe(created, now)
    if expiry < now:
        return Delete(words)
    return _keep(words, expiry, now)


def evaluate_record(
    metadata: Mapping[str, Any], now: datetime, ttl: float | None
) -> Verdict | None:
    """Verdict on a run record; None if its spec was never missed, for then it has no age.

    `ttl` is for how many seconds it is kept after that; None is for ever.
    """
    annotations = metadata.get("annotations") or {}
    if ORPHANED_SINCE not in annotations:
        return None
    try:
        if metadata.get("deletionTimestamp"):
            return _deleting(metadata, now)
        held = _is_on_hold(annotations)
    except ValueError as error:
        return Invalid(str(error)[:_MAX_REASON])
    since = orphaned_since(annotations)
    if since is None:
        return Invalid(
            f"{ORPHANED_SINCE}: {quote(annotations[ORPHANED_SINCE])} is not an RFC 3339 time"
        )
    if held:
        return Protected(f"{HOLD} is true")
    if ttl is None:
        return Protected("records.ttl is forever")
    words = f"its spec is gone since {since:%Y-%m-%dT%H:%M:%SZ}, records.ttl {format_duration(ttl)}"
    expiry = since + timedelta(seconds=ttl)
    return Delete(words) if expiry < now else _keep(words, expiry, now)


def counts_from_scheduling(metadata: Mapping[str, Any]) -> bool:
    """Whether others held the pod back at first, so that its age says nothing."""
    annotations = metadata.get("annotations") or {}
    return annotations.get(TTL_FROM) == SCHEDULING


def unnamed_ttls(metadata: Mapping[str, Any], foreign: Collection[str]) -> frozenset[str]:
    """The known TTLs of other cleaners that an object carries and no option names."""
    if _is_engines(metadata):
        return frozenset()
    return frozenset(OPT_IN_TTLS).intersection(metadata.get("annotations") or ()) - set(foreign)


def owner_of(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first of the object's owners."""
    return next(iter(metadata.get("ownerReferences") or ()), None)


def finalizers_of(metadata: Mapping[str, Any]) -> str:
    """Names of the finalizers that hold the object; "" without any that a controller must clear."""
    found = metadata.get("finalizers") or ()
    return ", ".join(name for name in found if name not in _PROPAGATION)


def waiting_for_finalizers(finalizers: str) -> str:
    """What a deletion waits for, in words."""
    plural = "s" if ", " in finalizers else ""
    return f"waits for finalizer{plural} {finalizers}"


def _is_engines(metadata: Mapping[str, Any]) -> bool:
    """Whether the engine made the object, by its labels."""
    return any(name.startswith(RESERVED_PREFIX) for name in metadata.get("labels") or ())


def _keep(words: str, expiry: datetime, now: datetime) -> Keep:
    left = format_duration(max(1, (expiry - now).total_seconds()))
    return Keep(f"{words}, expires in {left}")


def _deleting(metadata: Mapping[str, Any], now: datetime) -> Verdict:
    finalizers = finalizers_of(metadata)
    since = parse_time(metadata["deletionTimestamp"])
    overdue = since is not None and since < now
    if finalizers:
        words = f"is being deleted, {waiting_for_finalizers(finalizers)}"
        return Stuck(words) if overdue else Deleting(words)
    return Deleting("is being deleted already")


def _is_on_hold(annotations: Mapping[str, str]) -> bool:
    text = annotations.get(HOLD, "false")
    if text not in _TRUTH:
        raise ValueError(f"{HOLD}: {quote(text)} is neither true nor false")
    return _TRUTH[text]
