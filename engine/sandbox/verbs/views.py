"""The forms in which a client may ask for objects: whole, metadata only, Table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.sandbox.store import Entry, encode

if TYPE_CHECKING:
    from engine.sandbox.values import Obj

View = Callable[[Entry], bytes]

_META = "meta.k8s.io/v1"


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


def view_of(form: str) -> View:
    """How objects are shown in the form that was asked for."""
    return metadata_only if form == "PartialObjectMetadata" else whole
