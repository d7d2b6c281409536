"""The forms in which a client may ask for objects: whole, metadata only, Table, another group."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.sandbox.kinds import EVENTS_V1, Kind
from engine.sandbox.store import Entry, encode

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

View = Callable[[Entry], bytes]

_META = "meta.k8s.io/v1"
_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)


def wanted_form(accept: str) -> str:
    """The first form in Accept that the sandbox has: "", "Table" or "PartialObjectMetadata"."""
    for part in accept.split(","):
        found = re.search(r"as=(Table|PartialObjectMetadata)(?:List)?(?:;|$)", part.strip())
        if found and "v=v1beta1" not in part:
            return found[1]
        if not found and ("json" in part or "*/*" in part):
            return ""
    return ""


def whole(entry: Entry) -> bytes:
    """The object as it is."""
    return entry.raw


def metadata_only(entry: Entry) -> bytes:
    """Its metadata alone, encoded."""
    return encode(partial(entry))


def partial(entry: Entry) -> Obj:
    """Its metadata alone."""
    meta = entry.obj["metadata"]
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": meta}


def events_v1(entry: Entry) -> bytes:
    """An Event in the form of events.k8s.io/v1, encoded."""
    return encode(event_to_v1(entry.obj))


def view_of(kind: Kind, form: str) -> View:
    """How objects of this kind are shown in the form that was asked for."""
    if form == "PartialObjectMetadata":
        return metadata_only
    return events_v1 if kind is EVENTS_V1 else whole


def event_to_v1(event: Obj) -> Obj:
    """An Event of the core group in the form of events.k8s.io/v1."""
    out = dict(event, apiVersion=EVENTS_V1.api_version)
    for core, new in _RENAMED:
        if core in out:
            out[new] = out.pop(core)
    return out


def event_from_v1(event: Obj) -> Obj:
    """An Event of events.k8s.io/v1 in the form of the core group."""
    out = dict(event, apiVersion="v1")
    for core, new in _RENAMED:
        if new in out:
            out[core] = out.pop(new)
    return out
