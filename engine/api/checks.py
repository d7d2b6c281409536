"""What a JSON Schema can't say about a job: one function a rule, all in one visible tuple."""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import reduce
from itertools import islice
from operator import getitem, itemgetter

from msgspec import to_builtins

from engine.api.effective import AFTER_FINISHED, FROM_SECRET, TIME_LIMITS, EffectiveSpec
from engine.api.model import RETRIED, Limits
from engine.api.pod_fields import changed_fields, field_of
from engine.api.quantity import amount
from engine.api.schema_messages import dotted, shorten
from engine.api.spec_hash import secret_sources
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import Path
from engine.durations import FOREVER, format_duration
from engine.errors import MAX_SHOWN, Diagnostic, SourceLocation
from engine.wellknown import (
    CONFIG_MOUNT,
    CONFIG_VOLUME,
    FOREIGN_TTLS,
    MANAGED_BY,
    OPT_IN_TTLS,
    PROTECT,
    RESERVED_PREFIX,
    reserved_metadata,
)

SHOWN_VALUE = (
    "the value of a secret in an object is shown to all who may get jobspecs, and is not encrypted"
    " as Secrets are: use fromSecret"
)
_LARGEST_DATA = 1024 * 1024
"""Bytes."""
_MAX_LIST = 200
"""Characters of a list in a hint."""
_POD_PATCH = "podPatch"
_GATES, _RESTART = ("spec", "schedulingGates"), ("spec", "restartPolicy")
_MAX_DEADLINE = 2**31 - 1
"""Seconds: the API server takes no longer activeDeadlineSeconds, although it is of 64 bits."""
_TAG, _UPPER = re.compile(r"@.*|:[^:/]*$"), re.compile("[A-Z]")
_HOST = re.compile(r"[.:]|^localhost$")
_SHELL_VARIABLE = re.compile(r"(?<!\$)\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})")
_MAY_BE_ZERO = (AFTER_FINISHED, "ttlLeeway")


def containers_fit(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The job, or its defaults, name an image. Of each container, the name is its own, the secrets
    exist, no variable is both plain and secret, and there is a script or a command, not both.
    """
    if "image" not in effective.spec:
        hint = f"set it here or in a {JOB_DEFAULTS}"
        yield effective.error(("spec",), "spec.image is missing", hint)
    known = effective.spec.get("secrets", {})
    seen = set[str]()
    for one in effective.containers:
        spec, path = one.spec, one.path
        if "script" in spec and "command" in spec:
            message = f"{dotted(path)} has both script and command"
            hint = "a script is run by sh -e; keep one of them"
            yield effective.error((*path, "command"), message, hint, key=True)
        if one.name in seen:
            hint = "the job's own container is named main"
            yield effective.error((*path, "name"), f"two containers are named {one.name}", hint)
        seen.add(one.name)
        for index, name in enumerate(spec.get("secrets", ())):
            if name not in known:
                at = (*path, "secrets")
                hint = f"spec.secrets has: {shorten(', '.join(sorted(known)) or 'none', _MAX_LIST)}"
                message = f"{dotted(at)}: the job has no secret {name}"
                yield effective.error((*at, index), message, hint)
            if name in spec.get("env", ()):
                at = (*path, "env")
                message = f"{name} is both in {dotted(at)} and in its secrets"
                yield effective.error((*at, name), message, "keep one of them", key=True)


def volumes_fit(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No two volumes have the same name, or are mounted at the same place."""
    seen: set[tuple[str, str]] = {("name", CONFIG_VOLUME), ("mountPath", CONFIG_MOUNT)}
    for index, volume in enumerate(effective.spec.get("volumes", ())):
        for field in ("name", "mountPath"):
            value = volume[field].rstrip("/") or "/"
            if (field, value) in seen:
                at = ("spec", "volumes", index, field)
                yield effective.error(at, f"{dotted(at)}: {value} is taken", "choose another one")
            seen.add((field, value))


def containers_will_run(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No container asks for more than it may use. Warn of a name that no image has, and of `$NAME`
    in a variable, which only a shell expands.
    """
    for one in effective.containers:
        resources = one.spec.get("resources", {})
        for name, wanted in resources.get("requests", {}).items():
            most = resources.get("limits", {}).get(name)
            if most is not None and amount(wanted) > amount(most):
                at = (*one.path, "resources", "requests", name)
                yield effective.error(at, f"{dotted(at)} {wanted} is over the limit, {most}", "")
        for kind in ("requests", "limits"):
            if str(memory := resources.get(kind, {}).get("memory")).endswith("m"):
                at = (*one.path, "resources", kind, "memory")
                message = f"{dotted(at)} {memory} is {amount(memory):g} bytes"
                yield effective.error(at, message, "write 128Mi or 2G")
        image = _TAG.sub("", one.spec.get("image", ""))
        host, slash, path = image.partition("/")
        if _UPPER.search(path if slash and _HOST.search(host) else image):
            at = (*one.path, "image")
            message = f"{dotted(at)}: no image has upper case letters in its name"
            yield effective.warning(at, message, "only a tag may have some")
        for name, value in one.spec.get("env", {}).items():
            if found := _SHELL_VARIABLE.search(value):
                at = (*one.path, "env", name)
                hint = "$(NAME) is another variable of this job; script expands those of the image"
                yield effective.warning(at, f"{dotted(at)}: {found[0]} is not expanded", hint)


def times_fit(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No time is 0, each can be read and kept, and a pod carries the timeout.

    Warn of one that the operator's limit cuts; what has no end can't be cut.
    """
    is_in_pods = effective.config.features.active_deadline_seconds
    for path, time in effective.times.items():
        at = ("spec", *path)
        longest = format_duration(time.longest or 0)
        if time.seconds is None or time.wanted is None:
            message = f"{dotted(at)}: {reduce(getitem, path, effective.spec)!r} is not a duration"
            yield effective.error(at, message, "")
        elif time.seconds == 0 and path[0] not in _MAY_BE_ZERO:
            message = f"{dotted(at)} is 0, which would end the job at once"
            yield effective.error(at, message, "leave it out to get the default")
        elif path == ("timeout",) and _MAX_DEADLINE < time.seconds < math.inf and is_in_pods:
            value = shorten(str(effective.spec["timeout"]))
            message = f"{dotted(at)}: {value} is longer than a pod's activeDeadlineSeconds can be"
            yield effective.error(at, message, f"at most {_MAX_DEADLINE} seconds")
        elif time.wanted > time.seconds and math.isinf(time.wanted):
            hint = f"limits.{TIME_LIMITS[path[0]]}: {longest}"
            yield effective.error(at, f"{dotted(at)}: {FOREVER} is not allowed", hint)
        elif time.wanted > time.seconds and effective.writer(at):
            message = f"{dotted(at)} {format_duration(time.wanted)} is cut to {longest}"
            yield effective.warning(at, message, f"limits.{TIME_LIMITS[path[0]]}")


def ttl_outlives_the_job(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Warn of a TTL in which the job can't start and end. A held job would outlive every limit."""
    times, is_given = effective.times, "ttl" in effective.spec
    most = effective.config.limits.max_ttl
    if most is not None and effective.spec.get("hold"):
        hint = f"limits.maxTtl: {format_duration(most)}"
        yield effective.error(("spec", "hold"), "spec.hold: true is not allowed", hint)
    ttl = times[("ttl",)].seconds if is_given else most
    start, run = times[("startTimeout",)].seconds, times[("timeout",)].seconds
    if ttl and start is not None and run is not None and ttl < start + run:
        yield effective.warning(
            ("spec", "ttl") if is_given else ("spec",),
            f"{'spec.ttl' if is_given else 'limits.maxTtl'} {format_duration(ttl)} is shorter "
            f"than startTimeout + timeout ({format_duration(start + run)}): a running job may be "
            "pruned",
            "raise ttl, or leave it out" if is_given else "shorten timeout or startTimeout",
        )


def protection_is_capped(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A protected job holds no drain for longer than the operator allows."""
    longest, timeout = effective.config.limits.max_protect, effective.times[("timeout",)].seconds
    is_protected = effective.spec.get("disruption") == PROTECT
    if is_protected and longest is not None and (timeout or 0) > longest:
        words = f"spec.disruption: protect with a timeout of {format_duration(timeout or 0)}"
        hint = f"limits.maxProtect: {format_duration(longest)}"
        yield effective.error(("spec", "disruption"), f"{words} is not allowed", hint)


def attempts_are_capped(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A run may have no more pods than the operator allows.

    There is one to begin with, one for each retry, and one for each further pull policy; a retry of
    ImagePullFailed begins with the first policies again. Containers of one image and list move on
    together, unless a pod patch gives them others.
    """
    most = effective.config.limits.max_attempts
    if most is None:
        return
    retry = effective.spec.get("retry", {})
    retries = retry.get("max", 0)
    rounds = 1 + retries if "ImagePullFailed" in retry.get("on", RETRIED) else 1
    lists: dict[object, tuple[int, Path]] = {}
    for one in effective.containers:
        is_patched = _POD_PATCH in effective.spec
        pulled = one.path if is_patched else (one.spec.get("image"), one.policies)
        written = one.path if "pullPolicy" in one.spec else ("spec",)
        lists.setdefault(pulled, (max(0, len(one.policies) - 1), (*written, "pullPolicy")))
    count = 1 + retries + rounds * sum(further for further, _ in lists.values())
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
    allowed, patch = effective.config.limits.allow_pod_patch, effective.spec.get(_POD_PATCH)
    if allowed is None or not patch:
        return
    changes = changed_fields(effective.config.kubernetes, patch) if allowed else [((), ())]
    others = (
        path for path, field in changes if not any(field[: len(one)] == one for one in allowed)
    )
    hint = allowed_hint("allowPodPatch", map(".".join, allowed))
    yield from _errors_in_patch(effective, others, "is not allowed", hint)


def gates_are_not_held(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Under a limit on time no patch holds its pod back: the clocks of a gated pod don't run."""
    limits, names = (
        to_builtins(effective.config.limits),
        ("maxTtl", "maxStartTimeout", "maxTimeout"),
    )
    times = ((name, limits[name]) for name in names if limits[name] is not None)
    hint = ", ".join(f"limits.{name}: {format_duration(longest)}" for name, longest in times)
    if hint and field_of(effective.spec, _POD_PATCH, *_GATES):
        yield from _errors_in_patch(effective, [_GATES], "is not allowed", hint)


def pod_patch_runs_to_completion(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No patch of an invalid spec restarts the pod; the pods of valid ones are rendered."""
    policy = field_of(effective.spec, _POD_PATCH, *_RESTART)
    if policy not in (None, "Never"):
        hint = "a job runs to completion: it has to be Never; spec.retry tries again"
        yield from _errors_in_patch(effective, [_RESTART], f"is {policy}", hint)


def namespace_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The operator's limits allow the namespace, as far as it is known."""
    where = effective.place(("metadata", "namespace"))
    return refused_namespaces([(effective.metadata["namespace"], where)], effective.config.limits)


def refused_namespaces(
    named: Iterable[tuple[str, SourceLocation]], limits: Limits
) -> Iterator[Diagnostic]:
    """The same of (namespace, place) of jobs whose namespace is known by now."""
    allowed = limits.allowed_namespaces
    for name, where in named if allowed is not None else ():
        if name and not matches_any(name, allowed or ()):
            hint = allowed_hint("allowedNamespaces", allowed)
            yield Diagnostic(where, f"the namespace {name} is not allowed", hint)


def metadata_is_free(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No label or annotation is one that the engine sets, and nothing holds or owns its objects.

    Warn of an annotation that another cleaner may obey, and the engine doesn't.
    """
    of_others = {*FOREIGN_TTLS, *OPT_IN_TTLS, *effective.config.prune_annotations}
    for field in ("labels", "annotations"):
        for key in effective.metadata.get(field, ()):
            at = ("metadata", field, key)
            if key.startswith(RESERVED_PREFIX) or key == MANAGED_BY:
                message = f"metadata.{field}: {key} is the engine's own"
                yield effective.error(at, message, "choose another key", key=True)
            elif field == "annotations" and key in of_others:
                message = (
                    f"metadata.annotations: {key} neither ends nor keeps what the engine makes, "
                    "and a cleaner that obeys it may delete the pod of a running job"
                )
                yield effective.warning(at, message, "set spec.ttl in its place", key=True)
    reserved = reserved_metadata(field_of(effective.spec, _POD_PATCH, "metadata"))
    paths = (("metadata", *path) for path in reserved)
    yield from _errors_in_patch(effective, paths, "is the engine's own")


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


def config_map_fits(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Scripts and files together are no larger than a ConfigMap may be."""
    scripts = (one.spec.get("script", "") for one in effective.containers)
    texts = (*scripts, *effective.spec.get("files", {}).values())
    if sum(len(text.encode(errors="surrogatepass")) for text in texts) > _LARGEST_DATA:
        words = (
            "spec.files and its scripts are together larger than the 1 MiB that a ConfigMap holds"
        )
        yield effective.error(("spec",), words, "put large files into a volume or an image")


def secret_sources_are_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A secret's variable or file is allowed, and `fromFile` stays in the spec's folder."""
    for path, source in secret_sources(effective.spec):
        for field in source.keys() - {"value", FROM_SECRET}:
            refused = refused_source(field, source[field], effective.config.limits)
            if refused is None and field == "fromFile":
                refused = _refused_path(source[field])
            if refused is not None:
                yield effective.error((*path, field), *refused)


def check_object(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """An object of the cluster is one job, and reads nothing where the engine runs."""
    if effective.layers[0].matrix:
        words = "an object is one job, and a matrix makes several"
        yield effective.error(("spec", "matrix"), words, "keep it in a file, or apply each job")
    for path, source in secret_sources(effective.spec):
        for field in sorted({"fromEnv", "fromFile"} & source.keys()):
            words = "fromEnv and fromFile read the engine's own machine, not allowed in an object"
            hint = "use fromSecret, or keep the job in a file"
            yield effective.error((*path, field), words, hint)
        if "value" in source and not effective.config.limits.allow_secret_values:
            yield effective.error((*path, "value"), SHOWN_VALUE, "limits.allowSecretValues: false")


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
    containers_fit,
    volumes_fit,
    containers_will_run,
    times_fit,
    ttl_outlives_the_job,
    metadata_is_free,
    file_paths_fit,
    config_map_fits,
    secret_sources_are_allowed,
)
LIMITS: tuple[Callable[[EffectiveSpec], Iterator[Diagnostic]], ...] = (
    attempts_are_capped,
    protection_is_capped,
    policies_are_allowed,
    namespace_is_allowed,
    pod_patch_is_allowed,
    gates_are_not_held,
)
"""Of an engine whose operator has set any."""


def check_spec(effective: EffectiveSpec) -> tuple[Diagnostic, ...]:
    """Findings of every rule; errors and warnings."""
    found: list[Diagnostic] = []
    for check in CHECKS if effective.config.limits == Limits() else (*CHECKS, *LIMITS):
        found += check(effective)
    return tuple(found)


def matches_any(text: str, globs: tuple[str, ...]) -> bool:
    """Whether one of the globs matches all of `text`."""
    return any(fnmatchcase(text, glob) for glob in globs)


def allowed_hint(limit: str, allowed: Iterable[str] | None) -> str:
    """A limit and what it allows, as hints say it."""
    return f"limits.{limit}: {', '.join(allowed or ()) or 'none'}"


def _errors_in_patch(
    effective: EffectiveSpec, paths: Iterable[Path], message: str, hint: str = ""
) -> Iterator[Diagnostic]:
    """An error at each of these places in the pod patch, but for those of the operator's own."""
    for path in islice(paths, MAX_SHOWN):
        whole = ("spec", _POD_PATCH, *path)
        is_key = bool(path) and isinstance(path[-1], str)
        if effective.writer(whole):
            yield effective.error(whole, f"{dotted(whole)} {message}", hint, key=is_key)
