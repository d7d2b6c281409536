"""Where a value of the final pod was written: in the pod patch, or in a field of the spec."""

from collections.abc import Mapping
from typing import Any

from engine.api.effective import FROM_SECRET, EffectiveSpec
from engine.api.model import Job
from engine.api.pod_fields import CONTAINER_FIELDS, Path, field_of
from engine.errors import SourceLocation

_RENAMED: Mapping[str | int, str] = {"imagePullPolicy": "pullPolicy"}


def location_of(job: Job, pod: Mapping[str, Any], path: Path) -> SourceLocation:
    """The place of what set the field at `path`, or of the nearest that is above it.

    The job's own place for what came from a template or from the operator's defaults.
    """
    if job.origin is None:
        return job.place
    in_patch, by_patch = _in_patch(job.spec.get("podPatch"), pod, path)
    in_spec, by_spec = _from_secret(job, pod, path) or _in_spec(job.origin, pod, path)
    found = ("spec", "podPatch", *in_patch) if by_patch >= by_spec else in_spec
    if max(by_patch, by_spec) <= 1 or job.origin.writer(found) is None:
        return job.place
    return job.origin.place(found)


def field_name(pod: Mapping[str, Any], path: Path) -> str:
    """A field as events name it: `spec.containers{main}.image`; other lists by index."""
    text = ""
    for at, step in enumerate(path, 1):
        if isinstance(step, str):
            text += f".{step}" if text else step
        else:
            name = field_of(pod, *path[:at], "name")
            text += f"{{{name}}}" if name else f"[{step}]"
    return text


def _in_patch(patch: Any, pod: Any, path: Path) -> tuple[Path, int]:
    """(path in the patch, how many steps of `path` it covers): its lists have other indexes."""
    found: list[str | int] = []
    for step in path:
        pod, key = field_of(pod, step), step
        if isinstance(step, int):
            items = patch if isinstance(patch, list) else ()
            key = next((at for at, item in enumerate(items) if _is_same(item, pod)), -1)
        patch = field_of(patch, key)
        if patch is None:
            break
        found.append(key)
    return tuple(found), len(found)


def _in_spec(effective: EffectiveSpec, pod: Mapping[str, Any], path: Path) -> tuple[Path, int]:
    """(path in the spec, how many steps of `path` it covers)."""
    start, rest = path[:1], path[1:]
    if path[:2] == ("spec", "securityContext"):
        rest = ("podSecurityContext", *path[2:])
    elif path[0] == "spec" and path[1:2] and path[1] in CONTAINER_FIELDS:
        places = {one.name: one.path for one in effective.containers}
        start = places.get(field_of(pod, *path[:3], "name"), ())
        rest = tuple(_RENAMED.get(step, step) for step in path[3:])
    if not start:
        return (), 0
    found = [*start]
    for step in rest:
        if effective.writer((*found, step)) is None:
            break
        found.append(step)
    return tuple(found), len(path) - len(rest) + len(found) - len(start)


def _from_secret(job: Job, pod: Mapping[str, Any], path: Path) -> tuple[Path, int] | None:
    """The `fromSecret` of the spec that names the Secret at `path`."""
    name = field_of(pod, *path)
    sources: list[tuple[Path, Any]] = [
        *((("spec", "secrets", key), one) for key, one in job.spec.get("secrets", {}).items()),
        *(
            (("spec", "registryCredentials", at), one)
            for at, one in enumerate(job.spec.get("registryCredentials", ()))
        ),
    ]
    for at, source in sources:
        if path[-1] == "name" and source.get(FROM_SECRET, {}).get("name") == name:
            # A patch that has the whole path was applied after the spec.
            return (*at, FROM_SECRET, "name"), len(path) - 1
    return None


def _is_same(patched: Any, item: Any) -> bool:
    """Whether an entry of a list in the patch is about this entry of the pod's."""
    if not (isinstance(patched, Mapping) and isinstance(item, Mapping)):
        return bool(patched == item)
    if "name" in patched:
        return bool(patched["name"] == item.get("name"))
    return all(item.get(key) == value for key, value in patched.items())
