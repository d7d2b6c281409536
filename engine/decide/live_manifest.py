"""An object of an earlier attempt beside what would be sent for the next one: two sides of a diff.

Where the API was asked for a dry run, its answer is the other side. It has passed the same defaults
and admission, so that whatever is left is a change. Where it wasn't, the manifest is: of the object
only what the manifest sets is looked at, entries of lists by their name, for nobody knows then what
was set and what was filled in. A pod's field that is no longer set at all is then not seen.
"""

from collections.abc import Mapping
from typing import Any

from engine.decide.adoption import TOKEN_VOLUME, spec_as_made
from engine.render.manifests import MASK
from engine.wellknown import ATTEMPT, RUN

Manifest = Mapping[str, Any]
_OF_AN_ATTEMPT = frozenset({RUN, ATTEMPT})
_SIDES = ("data", "stringData")


def diff_sides(
    live: Manifest, manifest: Manifest, admitted: Manifest | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`live` and what would take its place, as they can be compared; secret values are masked.

    `manifest` is what would be sent, `admitted` the answer to a dry run of it. Two attempts never
    have the same name: the earlier one is given that of the next.
    """
    renamed = _renamed(live, live["metadata"]["name"], manifest["metadata"]["name"])
    before, after = _bare(renamed, manifest), _bare(admitted or manifest, manifest)
    if "spec" in before and not admitted:
        before["spec"] = _projected(before["spec"], after["spec"])
    return before, after


def masked(manifest: Manifest) -> dict[str, Any]:
    """A Secret without its values; anything else as it is."""
    if manifest.get("kind") != "Secret":
        return dict(manifest)
    hidden = {name: dict.fromkeys(manifest[name], MASK) for name in _SIDES if manifest.get(name)}
    return {**manifest, **hidden}


def _bare(found: Manifest, manifest: Manifest) -> dict[str, Any]:
    """Without what only an object in the cluster has; of its marks those that the manifest has."""
    metadata = {"name": found["metadata"]["name"], "namespace": found["metadata"]["namespace"]}
    for name in ("labels", "annotations"):
        own, marks = manifest["metadata"].get(name) or {}, found["metadata"].get(name) or {}
        kept = {key: marks[key] for key in own if key in marks and key not in _OF_AN_ATTEMPT}
        metadata |= {name: kept} if kept else {}
    bare = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
    rest = {k: v for k, v in found.items() if k not in bare and k != "status" and v is not None}
    if "spec" in rest:
        rest["spec"] = {k: v for k, v in spec_as_made(found).items() if k != "affinity" or v}
    return masked({**bare, **rest})


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _renamed(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, old, new) for item in value]
    return new if value == old else value


def _projected(live: Any, wanted: Any) -> Any:
    """Of `live` what `wanted` says something about, in its order: a server has one of its own."""
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        return {key: _projected(live[key], item) for key, item in wanted.items() if key in live}
    if not isinstance(live, list) or not isinstance(wanted, list):
        return live
    named = {item["name"]: item for item in wanted if isinstance(item, Mapping) and "name" in item}
    if not named and len(live) == len(wanted):
        return [_projected(one, two) for one, two in zip(live, wanted, strict=True)]
    if not named:
        return live
    return [
        _projected(item, named.get(item.get("name"), item))
        for item in live
        if item.get("name") != TOKEN_VOLUME
    ]
