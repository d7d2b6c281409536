"""What a JSON Schema can't say about a job: one function a rule, all in one visible tuple."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import reduce
from itertools import islice
from operator import getitem, itemgetter
from typing import Any

from engine.api.effective import AFTER_FINISHED, FROM_SECRET, TIME_LIMITS, EffectiveSpec
from engine.api.model import Limits
from engine.api.pod_patch import changed_fields
from engine.api.refused_later import (
    images_can_be_pulled,
    resources_are_known,
    service_account_can_exist,
)
from engine.api.schema_messages import dotted, shorten, show
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import Document
from engine.durations import FOREVER, format_duration
from engine.errors import Diagnostic, Severity
from engine.kubeschema.strategic_merge import DIRECTIVE
from engine.podsecurity.pod import entries, field_of
from engine.refs import MAIN_CONTAINER
from engine.wellknown import (
    DEFAULT_SERVICE_ACCOUNT,
    FOREIGN_TTLS,
    MANAGED_BY,
    OPT_IN_TTLS,
    RESERVED_PREFIX,
    reserved_metadata,
)

_MOST = 100
"""No more of a kind is told than can be read."""
_LISTED = 200
"""Characters of a list in a hint."""
_POD_PATCH = "podPatch"
_POD_TYPE: Mapping[str, str] = {"apiVersion": "v1", "kind": "Pod"}
_LONGEST_DEADLINE = 2**31 - 1
"""Seconds: the API server takes no longer activeDeadlineSeconds, although it is of 64 bits."""


def image_is_given(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The job, or its defaults, name an image."""
    if "image" not in effective.spec:
        yield effective.error(
            "spec.image is missing", f"set it here or in a {JOB_DEFAULTS}", "spec"
        )


def one_entry_point(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A container has a script or a command, not both."""
    for _, path, container in effective.containers():
        if "script" in container and "command" in container:
            yield effective.error(
                f"{effective.field(*path)} has both script and command",
                "a script is run by sh -e; keep one of them",
                *path, "command", key=True,
            )  # fmt: skip


def times_are_positive(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No time is 0, and each can be read."""
    for path in effective.times():
        seconds = effective.wanted_seconds(*path)
        if seconds is None:
            field, value = effective.field("spec", *path), reduce(getitem, path, effective.spec)
            yield effective.error(f"{field}: {value!r} is not a duration", "", "spec", *path)
        elif seconds == 0 and path[0] != AFTER_FINISHED:
            yield effective.error(
                f"{effective.field('spec', *path)} is 0, which would end the job at once",
                "leave it out to get the default",
                "spec", *path,
            )  # fmt: skip


def times_are_capped(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Warn of a time that the operator's limit cuts; what has no end can't be cut."""
    for path in effective.times():
        cap = effective.longest(path[0])
        wanted = None if cap is None else effective.wanted_seconds(*path)
        if cap is None or wanted is None or wanted <= cap:
            continue
        limit, field = TIME_LIMITS[path[0]], effective.field("spec", *path)
        if math.isinf(wanted):
            hint = f"{limit}: {format_duration(cap)}"
            yield effective.error(f"{field}: {FOREVER} is not allowed", hint, "spec", *path)
        elif effective.is_written("spec", *path):
            yield effective.warning(
                f"{field} {format_duration(wanted)} is cut to {format_duration(cap)}",
                limit,
                "spec", *path,
            )  # fmt: skip


def timeout_fits_a_pod(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """As activeDeadlineSeconds, where pods carry it."""
    seconds = effective.seconds("timeout")
    if not effective.config.features.active_deadline_seconds or seconds is None:
        return
    if _LONGEST_DEADLINE < seconds < math.inf:
        yield effective.error(
            f"{effective.field('spec', 'timeout')}: {shorten(str(effective.spec['timeout']))} "
            "is longer than a pod's activeDeadlineSeconds can be",
            f"at most {_LONGEST_DEADLINE} seconds, which is 68 years",
            "spec", "timeout",
        )  # fmt: skip


def hold_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """What is held outlives every limit."""
    cap = effective.longest("ttl")
    if cap is not None and effective.spec.get("hold"):
        field, hint = effective.field("spec", "hold"), f"limits.maxTtl: {format_duration(cap)}"
        yield effective.error(f"{field}: true is not allowed", hint, "spec", "hold")


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
    is_given = "ttl" in effective.spec
    ttl = effective.seconds("ttl") if is_given else effective.longest("ttl")
    if not ttl:
        return
    start, run = map(effective.seconds, ("startTimeout", "timeout"))
    if start is not None and run is not None and ttl < start + run:
        at = ("spec", "ttl") if is_given else ("spec",)
        named = effective.field(*at) if is_given else TIME_LIMITS["ttl"]
        yield effective.warning(
            f"{named} {format_duration(ttl)} is shorter than startTimeout + timeout "
            f"({format_duration(start + run)}): a running job may be pruned",
            "raise ttl, or leave it out" if is_given else "shorten timeout or startTimeout",
            *at,
        )  # fmt: skip


def attempts_are_capped(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A run may have no more pods than the operator allows.

    There is one to begin with, one for each retry, and one for each further pull policy; containers
    of one image and list move on together, unless a pod patch gives them others.
    """
    most = effective.config.limits.max_attempts
    if most is None:
        return
    retries = effective.spec.get("retry", {}).get("max", 0)
    lists: dict[object, tuple[int, tuple[str | int, ...]]] = {}
    for _, path, container in effective.containers():
        policies = allowed_policies(effective, container)
        pulled = path if _POD_PATCH in effective.spec else (container.get("image"), policies)
        written = path if "pullPolicy" in container else ("spec",)
        lists[pulled] = max(0, len(policies) - 1), (*written, "pullPolicy")
    count = 1 + retries + sum(further for further, _ in lists.values())
    if count > most:
        _, longest = max(lists.values(), key=itemgetter(0))
        at = ("spec", "retry", "max") if retries else longest
        yield effective.error(
            f"a run could have {count} attempts: 1, {retries} by "
            f"{effective.field('spec', 'retry')}, {count - 1 - retries} by further pull policies",
            f"limits.maxAttempts: {most}",
            *at,
        )  # fmt: skip


def policies_are_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Of each list of pull policies at least one is allowed; warn of those that aren't."""
    allowed = effective.config.limits.allowed_pull_policies
    for _, path, container in () if allowed is None else effective.containers():
        wanted = policy_list(container.get("pullPolicy"))
        rest = allowed_policies(effective, container)
        at, lists = (*path, "pullPolicy"), f"[{', '.join(wanted)}]"
        if wanted and not rest:
            yield effective.error(
                f"{effective.field(*at)} {lists} has none of the "
                f"allowed [{', '.join(allowed or ())}]",
                "limits.allowedPullPolicies",
                *at,
            )  # fmt: skip
        elif rest != wanted and effective.is_written(*at):
            yield effective.warning(
                f"{effective.field(*at)} {lists} is cut to [{', '.join(rest)}]",
                f"limits.allowedPullPolicies: {', '.join(allowed or ())}",
                *at,
            )  # fmt: skip


def images_are_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The operator's limits allow every image."""
    allowed = effective.config.limits.allowed_images
    if allowed is None:
        return
    for _, path, container in effective.containers():
        image = container.get("image")
        if image is not None and not matches_any(image, allowed):
            yield effective.error(
                f"the image {image} is not allowed",
                allowed_hint("allowedImages", allowed),
                *path, "image",
            )  # fmt: skip


def service_account_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The operator's limits allow the service account; without a token it is nobody."""
    allowed = effective.config.limits.allowed_service_accounts
    field = "serviceAccountName"
    name = effective.spec.get(field)
    if name is None and effective.spec.get("automountServiceAccountToken"):
        field, name = "automountServiceAccountToken", DEFAULT_SERVICE_ACCOUNT
    if allowed is not None and name is not None and not matches_any(name, allowed):
        yield effective.error(
            f"the service account {name} is not allowed",
            allowed_hint("allowedServiceAccounts", allowed),
            "spec", field,
        )  # fmt: skip


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
        for path in islice(others, _MOST):
            yield _not_in_a_patch(document, path, "is not allowed", hint)


def pod_patch_leaves_the_pod(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """A pod patch makes no other kind of the pod, and no second container of the main one."""
    patch = effective.spec.get(_POD_PATCH) or {}
    for field, fixed in _POD_TYPE.items():
        value = patch.get(field, fixed)
        if value != fixed:
            at = ("spec", _POD_PATCH, field)
            told = f"{effective.field(*at)} must be {fixed}, not {show(value)}"
            yield effective.error(told, "leave it out", *at)
    for index, container in entries(patch, "spec", "initContainers"):
        is_main = field_of(container, "name") == MAIN_CONTAINER
        if is_main and field_of(container, DIRECTIVE) != "delete":
            yield effective.error(
                f"two containers are named {MAIN_CONTAINER}",
                f"the job's own container is named {MAIN_CONTAINER}",
                "spec", _POD_PATCH, "spec", "initContainers", index, "name",
            )  # fmt: skip


def namespace_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The operator's limits allow the namespace, as far as it is known."""
    allowed = effective.config.limits.allowed_namespaces
    if allowed is None or not effective.namespace:
        return
    if not matches_any(effective.namespace, allowed):
        yield effective.error(
            f"the namespace {effective.namespace} is not allowed",
            allowed_hint("allowedNamespaces", allowed),
            "metadata", "namespace",
        )  # fmt: skip


def container_names_differ(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No two containers share a name; `main` is the job's own."""
    seen: set[str] = {"main"}
    for name, path, _ in effective.containers():
        if path == ("spec",):
            continue
        if name in seen:
            yield effective.error(
                f"two containers are named {name}",
                "the job's own container is named main",
                *path, "name",
            )  # fmt: skip
        seen.add(name)


def secrets_exist(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """What a service or init container asks for is among the job's secrets."""
    known = effective.spec.get("secrets", {})
    listed = shorten(", ".join(sorted(known)) or "none", _LISTED)
    for _, path, container in effective.containers():
        if path == ("spec",):
            continue
        for index, name in enumerate(container.get("secrets", ())):
            if name not in known:
                yield effective.error(
                    f"{effective.field(*path, 'secrets')}: the job has no secret {name}",
                    f"{effective.field('spec', 'secrets')} has: {listed}",
                    *path, "secrets", index,
                )  # fmt: skip


def variables_differ(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No variable is both plain and secret."""
    for _, path, container in effective.containers():
        for name in container.get("secrets", ()):
            if name in container.get("env", {}):
                yield effective.error(
                    f"{name} is both in {effective.field(*path, 'env')} and in its secrets",
                    "keep one of them",
                    *path, "env", name, key=True,
                )  # fmt: skip


def metadata_is_free(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No label or annotation is one that the engine sets, and nothing holds or owns its objects."""
    for document in effective.layers:
        metadata = document.data.get("metadata", {})
        for field in ("labels", "annotations"):
            for key in metadata.get(field, {}):
                if key.startswith(RESERVED_PREFIX) or key == MANAGED_BY:
                    yield Diagnostic(
                        document.locate(["metadata", field, key], key=True),
                        f"metadata.{field}: {key} is the engine's own",
                        "choose another key",
                    )
        patch = document.data.get("spec", {}).get(_POD_PATCH) or {}
        for path in islice(reserved_metadata(patch.get("metadata")), _MOST):
            yield _not_in_a_patch(document, ("metadata", *path), "is the engine's own")


def file_paths_fit(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No file stands where another needs a folder."""
    paths = set(effective.spec.get("files", ()))
    for path in sorted(paths):
        parents = path.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            parent = "/".join(parents[:depth])
            if parent in paths:
                yield effective.error(
                    f"{effective.field('spec', 'files')}: {path} is below {parent}, which is "
                    "a file",
                    "rename one of them",
                    "spec", "files", path, key=True,
                )  # fmt: skip


def from_file_stays_inside(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """`fromFile` names no path outside the spec's folder, and nothing hidden in it."""
    for path, source in _sources(effective):
        name = source.get("fromFile")
        if name is None:
            continue
        parts = name.split("/")
        if name.startswith("/") or ".." in parts:
            yield effective.error(
                f"fromFile {name} leads out of the spec's folder",
                "give a path below the folder that the spec is in",
                *path, "fromFile",
            )  # fmt: skip
        elif any(part.startswith(".") and part != "." for part in parts):
            yield effective.error(
                f"fromFile {name} is hidden, and hidden files are not for specs",
                "no part of the path may begin with a dot",
                *path, "fromFile",
            )  # fmt: skip


def secret_sources_are_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The operator's limits allow every variable, file and Secret that a secret comes from."""
    limits = effective.config.limits
    for path, source in _sources(effective):
        for field in source.keys() - {"value", FROM_SECRET}:
            refused = refused_source(field, source[field], limits)
            if refused is not None:
                yield effective.error(*refused, *path, field)
        secret = source.get(FROM_SECRET)
        if secret is not None and not is_allowed_secret(secret["name"], limits):
            yield effective.error(
                f"fromSecret: the Secret {secret['name']} is not allowed",
                allowed_hint("allowedSecrets", limits.allowed_secrets),
                *path, FROM_SECRET, "name",
            )  # fmt: skip


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


def is_allowed_secret(name: str, limits: Limits) -> bool:
    """Whether `limits` let a pod refer to the Secret of this name, which isn't its own."""
    return limits.allowed_secrets is None or matches_any(name, limits.allowed_secrets)


CHECKS: tuple[Callable[[EffectiveSpec], Iterator[Diagnostic]], ...] = (
    image_is_given,
    one_entry_point,
    times_are_positive,
    times_are_capped,
    timeout_fits_a_pod,
    hold_is_allowed,
    ttl_is_the_engines,
    ttl_outlives_the_job,
    attempts_are_capped,
    policies_are_allowed,
    images_are_allowed,
    namespace_is_allowed,
    service_account_is_allowed,
    pod_patch_is_allowed,
    pod_patch_leaves_the_pod,
    container_names_differ,
    secrets_exist,
    variables_differ,
    metadata_is_free,
    file_paths_fit,
    from_file_stays_inside,
    secret_sources_are_allowed,
    images_can_be_pulled,
    service_account_can_exist,
    resources_are_known,
)


def check_spec(effective: EffectiveSpec) -> tuple[Diagnostic, ...]:
    """Findings of every rule; errors and warnings."""
    return tuple(problem for check in CHECKS for problem in check(effective))


def policy_list(value: str | list[str] | None) -> tuple[str, ...]:
    """A pull policy as written (one or a list) as a tuple; empty when none is given."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def allowed_policies(effective: EffectiveSpec, container: Mapping[str, Any]) -> tuple[str, ...]:
    """The container's pull policies, or else the job's, without what the operator doesn't allow."""
    allowed = effective.config.limits.allowed_pull_policies
    wanted = policy_list(container.get("pullPolicy", effective.spec.get("pullPolicy")))
    return wanted if allowed is None else tuple(policy for policy in wanted if policy in allowed)


def matches_any(text: str, globs: tuple[str, ...]) -> bool:
    """Whether one of the globs matches all of `text`."""
    return any(fnmatchcase(text, glob) for glob in globs)


def allowed_hint(limit: str, allowed: Iterable[str] | None) -> str:
    """A limit and what it allows, as hints say it."""
    return f"limits.{limit}: {', '.join(allowed or ()) or 'none'}"


def _not_in_a_patch(
    document: Document, path: tuple[str | int, ...], message: str, hint: str = ""
) -> Diagnostic:
    whole = ("spec", _POD_PATCH, *path)
    where = document.locate(whole, key=bool(path) and isinstance(path[-1], str))
    return Diagnostic(where, f"{dotted(document.written_path(whole))} {message}", hint)


def _sources(
    effective: EffectiveSpec,
) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    for name, source in effective.spec.get("secrets", {}).items():
        yield ("spec", "secrets", name), source
    for index, credential in enumerate(effective.spec.get("registryCredentials", ())):
        at: tuple[str | int, ...] = ("spec", "registryCredentials", index)
        yield (at, credential) if FROM_SECRET in credential else (
            (*at, "password"), credential["password"]
        )  # fmt: skip
