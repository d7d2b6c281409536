"""When an object expires, by its annotations: ours, and those of other cleaners.

Only what carries a TTL is judged at all, and a record whose spec is gone. One value that can't be
read keeps the object: an object is deleted only if all are understood.
"""

import math
import re
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.api.versions import API_VERSION, JOB_SPEC
from engine.durations import FOREVER, format_duration, parse_duration
from engine.lifecycle.orphan import orphaned_since
from engine.lifecycle.state import Pod, held_by, is_finished
from engine.prune.result import PruneAction
from engine.status.waiting import scheduled_at
from engine.times import parse_time
from engine.wellknown import (
    COMPONENT,
    EXPIRES_AT,
    FOREIGN_TTLS,
    HOLD,
    JOB,
    OPT_IN_TTLS,
    ORPHANED_SINCE,
    SCHEDULING,
    TTL,
    TTL_FROM,
)

_MAX_VALUE, _MAX_REASON = 100, 500
_FINALIZER_WAIT = timedelta(seconds=2)
"""At least a second: the server's times leave the fraction out."""
_PROPAGATION = frozenset({"foregroundDeletion", "orphan"})
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)

Verdict = tuple[PruneAction, str]
"""What is to become of an object, and why: DELETED once its time is over."""


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
    if annotations.keys().isdisjoint((TTL, EXPIRES_AT, *foreign)):
        return None
    try:
        return _settled(metadata, now) or _by_age(metadata, now, foreign, pod)
    except (ValueError, OverflowError) as error:
        return PruneAction.INVALID, str(error)[:_MAX_REASON]


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
        if settled := _settled(metadata, now):
            return settled
    except ValueError as error:
        return PruneAction.INVALID, str(error)[:_MAX_REASON]
    since = orphaned_since(annotations)
    if since is None:
        words = f"{_quote(annotations[ORPHANED_SINCE])} is not an RFC 3339 time"
        return PruneAction.INVALID, f"{ORPHANED_SINCE}: {words}"
    if ttl is None:
        return PruneAction.PROTECTED, "records.ttl is forever"
    words = f"its spec is gone since {since:%Y-%m-%dT%H:%M:%SZ}, records.ttl {format_duration(ttl)}"
    return _expired(words, since + timedelta(seconds=ttl), now)


def counts_from_scheduling(metadata: Mapping[str, Any]) -> bool:
    """Whether others held the pod back at first, so that its age says nothing."""
    annotations = metadata.get("annotations") or {}
    return annotations.get(TTL_FROM) == SCHEDULING


def unnamed_ttls(metadata: Mapping[str, Any], foreign: Collection[str]) -> frozenset[str]:
    """The known TTLs of other cleaners that an object carries and no option names."""
    if _is_engines(metadata):
        return frozenset()
    return frozenset(OPT_IN_TTLS).intersection(metadata.get("annotations") or ()) - set(foreign)


def waiting_for_finalizers(metadata: Mapping[str, Any]) -> str:
    """What a deletion waits for, in words; "" without a finalizer that a controller must clear."""
    found = [name for name in metadata.get("finalizers") or () if name not in _PROPAGATION]
    return f"waits for finalizer{'s' if len(found) > 1 else ''} {', '.join(found)}" if found else ""


def is_stuck(metadata: Mapping[str, Any], now: datetime) -> bool:
    """Whether a finalizer holds what should have been gone by `now`.

    A pod's deletionTimestamp includes its grace period. Before it, and for a moment after, neither
    the kubelet nor a controller such as Kueue's is late.
    """
    due = parse_time(metadata.get("deletionTimestamp"))
    late = due is not None and due + _FINALIZER_WAIT < now
    return late and bool(waiting_for_finalizers(metadata))


def _is_engines(metadata: Mapping[str, Any]) -> bool:
    """Whether the engine made the object, by its labels."""
    return not {JOB, COMPONENT}.isdisjoint(metadata.get("labels") or ())


def _settled(metadata: Mapping[str, Any], now: datetime) -> Verdict | None:
    """Verdict on what is on its way already, or on hold. Errors: ValueError."""
    deleted = parse_time(metadata.get("deletionTimestamp"))
    if deleted is not None:
        waits = waiting_for_finalizers(metadata)
        stuck = waits and deleted < now
        words = f"is being deleted, {waits}" if waits else "is being deleted already"
        return (PruneAction.FAILED if stuck else PruneAction.KEPT), words
    text = (metadata.get("annotations") or {}).get(HOLD, "false")
    if text not in ("true", "false"):
        raise ValueError(f"{HOLD}: {_quote(text)} is neither true nor false")
    return (PruneAction.PROTECTED, f"{HOLD} is true") if text == "true" else None


def _by_age(
    metadata: Mapping[str, Any], now: datetime, foreign: Collection[str], pod: Pod | None
) -> Verdict:
    """Errors: ValueError and OverflowError, where a value can't be read."""
    term = _read_term(metadata["annotations"], foreign)
    created = parse_time(metadata.get("creationTimestamp"))
    if created is None:
        raise ValueError("it has no creation time")
    for owner in filter(_is_not_its_spec, metadata.get("ownerReferences") or ()):
        return PruneAction.KEPT, f"goes with its owner {owner['kind'].lower()}/{owner['name']}"
    if isinstance(term, datetime):
        passed = (now - term).total_seconds()
        ago = f", {format_duration(int(passed))} ago" if passed > 0 else ""
        return _expired(f"expires-at {term.isoformat().replace('+00:00', 'Z')}{ago}", term, now)
    if term == math.inf:
        return PruneAction.PROTECTED, "ttl forever"
    if pod is not None and counts_from_scheduling(metadata):
        began = scheduled_at(pod) or (created if is_finished(pod) else None)
        if began is None:
            words = "it has no node yet, from which on its TTL counts"
            return PruneAction.PROTECTED, held_by(pod) or words
        created = began
    age = max(0, int((now - created).total_seconds()))
    return _expired(f"ttl {term:.15g}s, age {age}s", created + timedelta(seconds=term), now)


def _is_not_its_spec(owner: Mapping[str, Any]) -> bool:
    """A JobSpec outlives the pods that it owns."""
    return (owner["apiVersion"], owner["kind"]) != (API_VERSION, JOB_SPEC)


def _expired(words: str, expiry: datetime, now: datetime) -> Verdict:
    if expiry < now:
        return PruneAction.DELETED, words
    left = format_duration(max(1, (expiry - now).total_seconds()))
    return PruneAction.KEPT, f"{words}, expires in {left}"


def _read_term(annotations: Mapping[str, str], foreign: Collection[str]) -> float | datetime:
    """The time, or the seconds from creation, that count; `inf` is for ever.

    `forever` of our own beats everything, then `expires-at`, then our own TTL, then the longest
    that another cleaner's annotation asks for.
    Errors: ValueError, with a message for people, when any of them can't be read.
    """
    terms: dict[str, Any] = {}
    problems = []
    for name in (TTL, EXPIRES_AT, *foreign):
        if name in annotations:
            try:
                terms[name] = _parse(name, annotations[name])
            except (ValueError, OverflowError) as error:
                problems.append(f"{name}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    if EXPIRES_AT in terms and terms.get(TTL) != math.inf:
        at: datetime = terms[EXPIRES_AT]
        return at
    seconds: float = terms[TTL] if TTL in terms else max(terms.values())
    return seconds


def _parse(name: str, text: str) -> Any:
    """Errors: ValueError and OverflowError."""
    if len(text) > _MAX_VALUE:
        raise ValueError(f"{_quote(text)} is too long")
    if name != EXPIRES_AT:
        return math.inf if text.strip() == FOREVER else parse_duration(text)
    if not _RFC_3339.fullmatch(text):
        raise ValueError(f"{text!r} is not an RFC 3339 time, such as 2030-01-31T18:00:00Z")
    return datetime.fromisoformat(text.upper())


def _quote(text: str) -> str:
    """`text` as a message quotes it: of a long one the beginning."""
    return repr(text) if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]!r}…"
