"""What a JSON Schema can't say about a job: one function a rule, all in one visible tuple."""

import math
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import reduce
from itertools import islice
from operator import getitem, itemgetter
from typing import Any

from engine.api.effective import AFTER_FINISHED, FROM_SECRET, TIME_LIMITS, EffectiveSpec, Path
from engine.api.model import Job, Limits
from engine.api.pod_fields import changed_fields
from engine.api.schema_messages import dotted, shorten
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import Document
from engine.durations import FOREVER, format_duration
from engine.errors import MAX_SHOWN, Diagnostic, Severity
from engine.wellknown import (
    FOREIGN_TTLS,
    MANAGED_BY,
    OPT_IN_TTLS,
    RESERVED_PREFIX,
    reserved_metadata,
)

_MAX_LIST = 200
"""Characters of a list in a hint."""
_POD_PATCH = "podPatch"
_MAX_DEADLINE = 2**31 - 1
"""Seconds: the API server takes no longer activeDeadlineSeconds, although it is of 64 bits."""
_MAY_BE_ZERO = (AFTER_FINISHED, "ttlLeeway")


def image_is_given(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The job, or its defaults, name an image."""
    if "image" not in effective.spec:
        hint = f"set it here or in a {JOB_DEFAULTS}"
        yield effective.error(("spec",), "spec.image is missing", hint)


def one_entry_point(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A container has a script or a command, not both."""
    for one in effective.containers:
        if "script" in one.spec and "command" in one.spec:
            message = f"{dotted(one.path)} has both script and command"
            hint = "a script is run by sh -e; keep one of them"
            yield effective.error((*one.path, "command"), message, hint, key=True)


def times_can_be_kept(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No time is 0, each can be read, and the timeout fits a pod that carries it."""
    is_in_pods = effective.config.features.active_deadline_seconds
    for path, time in effective.times.items():
        at = ("spec", *path)
        if time.seconds is None:
            message = f"{dotted(at)}: {reduce(getitem, path, effective.spec)!r} is not a duration"
            yield effective.error(at, message, "")
        elif time.seconds == 0 and path[0] not in _MAY_BE_ZERO:
            message = f"{dotted(at)} is 0, which would end the job at once"
            yield effective.error(at, message, "leave it out to get the default")
        elif path == ("timeout",) and _MAX_DEADLINE < time.seconds < math.inf and is_in_pods:
            value = shorten(str(effective.spec["timeout"]))
            message = f"{dotted(at)}: {value} is longer than a pod's activeDeadlineSeconds can be"
            yield effective.error(at, message, f"at most {_MAX_DEADLINE} seconds")


def times_are_capped(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Warn of a time that the operator's limit cuts; what has no end can't be cut."""
    for path, time in effective.times.items():
        if time.wanted is None or time.longest is None or time.wanted <= time.longest:
            continue
        at, limit, longest = ("spec", *path), TIME_LIMITS[path[0]], format_duration(time.longest)
        if math.isinf(time.wanted):
            message = f"{dotted(at)}: {FOREVER} is not allowed"
            yield effective.error(at, message, f"{limit}: {longest}")
        elif effective.writer(at):
            message = f"{dotted(at)} {format_duration(time.wanted)} is cut to {longest}"
            yield effective.warning(at, message, limit)


def hold_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A held job outlives every limit."""
    cap = effective.config.limits.max_ttl
    if cap is not None and effective.spec.get("hold"):
        hint = f"limits.maxTtl: {format_duration(cap)}"
        yield effective.error(("spec", "hold"), "spec.hold: true is not allowed", hint)


def ttl_is_the_engines(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Warn of an annotation that another cleaner may obey, and the engine doesn't."""
    for document in effective.layers:
        annotations = document.data.get("metadata", {}).get("annotations")
        if not annotations:
            continue
        for name in (*FOREIGN_TTLS, *OPT_IN_TTLS, *effective.config.prune.annotations):
            if name in annotations:
                yield Diagnostic(
                    document.locate(["metadata", "annotations", name], key=True),
                    f"metadata.annotations: {name} neither ends nor keeps what the engine makes, "
                    "and a cleaner that obeys it may delete the pod of a running job",
                    "set spec.ttl in its place",
                    Severity.WARNING,
                )


def ttl_outlives_the_job(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Warn of a TTL in which the job can't start and end."""
    times, is_given = effective.times, "ttl" in effective.spec
    ttl = times[("ttl",)].seconds if is_given else effective.config.limits.max_ttl
    start, run = times[("startTimeout",)].seconds, times[("timeout",)].seconds
    if ttl and start is not None and run is not None and ttl < start + run:
        yield effective.warning(
            ("spec", "ttl") if is_given else ("spec",),
            f"{'spec.ttl' if is_given else TIME_LIMITS['ttl']} {format_duration(ttl)} is shorter "
            f"than startTimeout + timeout ({format_duration(start + run)}): a running job may be "
            "pruned",
            "raise ttl, or leave it out" if is_given else "shorten timeout or startTimeout",
        )


def attempts_are_capped(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A run may have no more pods than the operator allows.

    There is one to begin with, one for each retry, and one for each further pull policy; containers
    of one image and list move on together, unless a pod patch gives them others.
    """
    most = effective.config.limits.max_attempts
    if most is None:
        return
    retries = effective.spec.get("retry", {}).get("max", 0)
    lists: dict[object, tuple[int, Path]] = {}
    for one in effective.containers:
        is_patched = _POD_PATCH in effective.spec
        pulled = one.path if is_patched else (one.spec.get("image"), one.policies)
        written = one.path if "pullPolicy" in one.spec else ("spec",)
        lists.setdefault(pulled, (max(0, len(one.policies) - 1), (*written, "pullPolicy")))
    count = 1 + retries + sum(further for further, _ in lists.values())
    if count > most:
        _, longest = max(lists.values(), key=itemgetter(0))
        yield effective.error(
            ("spec", "retry", "max") if retries else longest,
            f"a run could have {count} attempts: 1, {retries} by spec.retry, "
            f"{count - 1 - retries} by further pull policies",
            f"limits.maxAttempts: {most}",
        )


def policies_are_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Of each list of pull policies at least one is allowed; warn of those that aren't."""
    allowed = ", ".join(effective.config.limits.allowed_pull_policies or ())
    for one in effective.containers:
        if "pullPolicy" not in one.spec or one.policies == one.wanted:
            continue
        at = (*one.path, "pullPolicy")
        lists = f"{dotted(at)} [{', '.join(one.wanted)}]"
        if not one.policies:
            message = f"{lists} has none of the allowed [{allowed}]"
            yield effective.error(at, message, "limits.allowedPullPolicies")
        elif effective.writer(at):
            message = f"{lists} is cut to [{', '.join(one.policies)}]"
            yield effective.warning(at, message, f"limits.allowedPullPolicies: {allowed}")


def pod_patch_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A pod patch changes no other fields than the operator allows."""
    allowed = effective.config.limits.allow_pod_patch
    if allowed is None:
        return
    hint = allowed_hint("allowPodPatch", map(".".join, allowed))
    for document in effective.layers:
        patch = document.data.get("spec", {}).get(_POD_PATCH)
        if patch and not allowed:
            yield _not_in_a_patch(document, (), "is not allowed", hint)
        changes = changed_fields(effective.config.kubernetes, patch) if patch and allowed else ()
        others = (
            path
            for path, field in changes
            if not any(field[: len(start)] == start for start in allowed)
        )
        for path in islice(others, MAX_SHOWN):
            yield _not_in_a_patch(document, path, "is not allowed", hint)


def namespace_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The operator's limits allow the namespace, as far as it is known."""
    name = effective.namespace
    if name and (refused := _refused_namespace(name, effective.config.limits)):
        yield effective.error(("metadata", "namespace"), *refused)


def namespace_problems(jobs: Iterable[Job], limits: Limits) -> Iterator[Diagnostic]:
    """The same of jobs whose namespace is known by now."""
    for job in jobs:
        if refused := _refused_namespace(job.namespace, limits):
            yield Diagnostic(job.place, *refused)


def _refused_namespace(name: str, limits: Limits) -> tuple[str, str] | None:
    allowed = limits.allowed_namespaces
    if allowed is None or matches_any(name, allowed):
        return None
    return f"the namespace {name} is not allowed", allowed_hint("allowedNamespaces", allowed)


def container_names_differ(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No two containers share a name; `main` is the job's own."""
    seen = set[str]()
    for one in effective.containers:
        if one.name in seen:
            message = f"two containers are named {one.name}"
            hint = "the job's own container is named main"
            yield effective.error((*one.path, "name"), message, hint)
        seen.add(one.name)


def secrets_exist(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """What a service or init container asks for is among the job's secrets."""
    known = effective.spec.get("secrets", {})
    for one in effective.containers[1:]:
        for index, name in enumerate(one.spec.get("secrets", ())):
            if name not in known:
                at = (*one.path, "secrets")
                listed = shorten(", ".join(sorted(known)) or "none", _MAX_LIST)
                message = f"{dotted(at)}: the job has no secret {name}"
                yield effective.error((*at, index), message, f"spec.secrets has: {listed}")


def variables_differ(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No variable is both plain and secret."""
    for one in effective.containers:
        for name in one.spec.get("secrets", ()):
            if name in one.spec.get("env", {}):
                at = (*one.path, "env")
                message = f"{name} is both in {dotted(at)} and in its secrets"
                yield effective.error((*at, name), message, "keep one of them", key=True)


def metadata_is_free(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No label or annotation is one that the engine sets, and nothing holds or owns its objects."""
    for document in effective.layers:
        metadata = document.data.get("metadata", {})
        for field in ("labels", "annotations"):
            for key in metadata.get(field, ()):
                if key.startswith(RESERVED_PREFIX) or key == MANAGED_BY:
                    where = document.locate(["metadata", field, key], key=True)
                    message = f"metadata.{field}: {key} is the engine's own"
                    yield Diagnostic(where, message, "choose another key")
        patch = document.data.get("spec", {}).get(_POD_PATCH)
        reserved = reserved_metadata(patch.get("metadata")) if patch else ()
        for path in islice(reserved, MAX_SHOWN):
            yield _not_in_a_patch(document, ("metadata", *path), "is the engine's own")


def file_paths_fit(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No path is both a file and a folder."""
    paths = set(effective.spec.get("files", ()))
    for path in sorted(paths):
        parent = path
        while parent := parent.rpartition("/")[0]:
            if parent in paths:
                message = f"spec.files: {path} is below {parent}, which is a file"
                at = ("spec", "files", path)
                yield effective.error(at, message, "rename one of them", key=True)


def secret_sources_are_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A secret's variable or file is allowed, and `fromFile` stays in the spec's folder."""
    for path, source in _sources(effective):
        for field in source.keys() - {"value", FROM_SECRET}:
            refused = refused_source(field, source[field], effective.config.limits)
            if refused is None and field == "fromFile":
                refused = _refused_path(source[field])
            if refused is not None:
                yield effective.error((*path, field), *refused)


def _refused_path(name: str) -> tuple[str, str] | None:
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        return (
            f"fromFile {name} leads out of the spec's folder",
            "give a path below the folder that the spec is in",
        )
    if any(part.startswith(".") and part != "." for part in parts):
        return (
            f"fromFile {name} is hidden, and hidden files are not for specs",
            "no part of the path may begin with a dot",
        )
    return None


def refused_source(field: str, name: str, limits: Limits) -> tuple[str, str] | None:
    """(message, hint) if `limits` keep specs from reading `name` by fromEnv or fromFile.

    What it says doesn't depend on whether there is such a variable or file.
    """
    if field == "fromEnv" and not matches_any(name, limits.allowed_secret_env):
        allowed = allowed_hint("allowedSecretEnv", limits.allowed_secret_env)
        return (
            f"fromEnv: the variable {name} is not allowed",
            (
                f"{allowed}; --allow-secret-env {name} adds it; renaming the variable in the spec "
                "is a change of the spec, which runs the job again"
            ),
        )
    if field == "fromFile" and not limits.allow_secret_files:
        return f"fromFile: the file {name} is not allowed", "limits.allowSecretFiles: false"
    return None


CHECKS: tuple[Callable[[EffectiveSpec], Iterator[Diagnostic]], ...] = (
    image_is_given,
    one_entry_point,
    times_can_be_kept,
    times_are_capped,
    hold_is_allowed,
    ttl_is_the_engines,
    ttl_outlives_the_job,
    attempts_are_capped,
    policies_are_allowed,
    namespace_is_allowed,
    pod_patch_is_allowed,
    container_names_differ,
    secrets_exist,
    variables_differ,
    metadata_is_free,
    file_paths_fit,
    secret_sources_are_allowed,
)


def check_spec(effective: EffectiveSpec) -> tuple[Diagnostic, ...]:
    """Findings of every rule; errors and warnings."""
    return tuple(problem for check in CHECKS for problem in check(effective))


def matches_any(text: str, globs: tuple[str, ...]) -> bool:
    """Whether one of the globs matches all of `text`."""
    return any(fnmatchcase(text, glob) for glob in globs)


def allowed_hint(limit: str, allowed: Iterable[str] | None) -> str:
    """A limit and what it allows, as hints say it."""
    return f"limits.{limit}: {', '.join(allowed or ()) or 'none'}"


def _not_in_a_patch(document: Document, path: Path, message: str, hint: str = "") -> Diagnostic:
    whole = ("spec", _POD_PATCH, *path)
    where = document.locate(whole, key=bool(path) and isinstance(path[-1], str))
    return Diagnostic(where, f"{dotted(whole)} {message}", hint)


def _sources(effective: EffectiveSpec) -> Iterator[tuple[Path, dict[str, Any]]]:
    for name, source in effective.spec.get("secrets", {}).items():
        yield ("spec", "secrets", name), source
    for index, credential in enumerate(effective.spec.get("registryCredentials", ())):
        if "password" in credential:
            at = ("spec", "registryCredentials", index, "password")
            yield at, credential["password"]
