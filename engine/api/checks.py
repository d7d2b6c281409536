"""What a JSON Schema can't say about a job: one function a rule, all in one visible tuple."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from engine.api.effective import EffectiveSpec
from engine.api.model import Limits
from engine.api.versions import JOB_DEFAULTS
from engine.durations import format_duration, parse_duration
from engine.errors import Diagnostic
from engine.wellknown import MANAGED_BY, RESERVED_PREFIX

_TIMES = ("timeout", "startTimeout", "ttl")


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
    for name in _TIMES:
        value = effective.spec.get(name)
        if value is None:
            continue
        seconds, field = _seconds(value), effective.field("spec", name)
        if seconds is None:
            yield effective.error(f"{field}: {value!r} is not a duration", "", "spec", name)
        elif seconds == 0:
            yield effective.error(
                f"{field} is 0, which would end the job at once",
                "leave it out to get the default",
                "spec", name,
            )  # fmt: skip


def timeout_is_capped(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Warn of a timeout that the operator's limit cuts."""
    cap, wanted = effective.config.limits.max_timeout, _seconds(effective.spec["timeout"])
    if (
        cap is not None
        and wanted is not None
        and wanted > cap
        and _is_written(effective, "timeout")
    ):
        yield effective.warning(
            f"{effective.field('spec', 'timeout')} {format_duration(wanted)} is cut to "
            f"{format_duration(cap)}",
            "limits.maxTimeout",
            "spec", "timeout",
        )  # fmt: skip


def ttl_outlives_the_job(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Warn of a TTL in which the job can't start and end."""
    if "ttl" not in effective.spec:
        return
    ttl, start, run = (_seconds(effective.spec[n]) for n in ("ttl", "startTimeout", "timeout"))
    if ttl is None or start is None or run is None:
        return
    run = min(run, effective.config.limits.max_timeout or run)
    if 0 < ttl < start + run:
        yield effective.warning(
            f"{effective.field('spec', 'ttl')} {format_duration(ttl)} is shorter than "
            f"startTimeout + timeout "
            f"({format_duration(start + run)}): a running job may be pruned",
            "raise ttl, or leave it out",
            "spec", "ttl",
        )  # fmt: skip


def policies_are_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Of each list of pull policies at least one is allowed."""
    allowed = effective.config.limits.allowed_pull_policies
    if allowed is None:
        return
    for _, path, container in effective.containers():
        wanted = policy_list(container.get("pullPolicy"))
        if wanted and not any(policy in allowed for policy in wanted):
            yield effective.error(
                f"{effective.field(*path, 'pullPolicy')} [{', '.join(wanted)}] has none of the "
                f"allowed [{', '.join(allowed)}]",
                "limits.allowedPullPolicies",
                *path, "pullPolicy",
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
                f"limits.allowedImages: {', '.join(allowed) or 'none'}",
                *path, "image",
            )  # fmt: skip


def namespace_is_allowed(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """The operator's limits allow the namespace, as far as it is known."""
    allowed = effective.config.limits.allowed_namespaces
    if allowed is None or not effective.namespace:
        return
    if not matches_any(effective.namespace, allowed):
        yield effective.error(
            f"the namespace {effective.namespace} is not allowed",
            f"limits.allowedNamespaces: {', '.join(allowed) or 'none'}",
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
    for _, path, container in effective.containers():
        if path == ("spec",):
            continue
        for index, name in enumerate(container.get("secrets", ())):
            if name not in known:
                yield effective.error(
                    f"{effective.field(*path, 'secrets')}: the job has no secret {name}",
                    f"{effective.field('spec', 'secrets')} has: "
                    f"{', '.join(sorted(known)) or 'none'}",
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


def labels_are_free(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No label or annotation is one that the engine sets."""
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


def text_has_no_nul(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """No text has a NUL character in it."""
    for path in _nul_paths(effective.spec, ("spec",)):
        yield effective.error(
            f"{effective.field(*path)} contains a NUL character",
            "no process can be given one",
            *path,
        )


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
    """The operator's limits allow every variable and file that a secret comes from."""
    for path, source in _sources(effective):
        for field in source.keys() - {"value"}:
            refused = refused_source(field, source[field], effective.config.limits)
            if refused is not None:
                yield effective.error(*refused, *path, field)


def refused_source(field: str, name: str, limits: Limits) -> tuple[str, str] | None:
    """(message, hint) if `limits` keep specs from reading `name` by fromEnv or fromFile.

    What it says doesn't depend on whether there is such a variable or file.
    """
    if field == "fromEnv" and not matches_any(name, limits.allowed_secret_env):
        allowed = ", ".join(limits.allowed_secret_env) or "none"
        return (
            f"fromEnv: the variable {name} is not allowed",
            (
                f"limits.allowedSecretEnv: {allowed}; --allow-secret-env {name} adds it; renaming "
                "the variable in the spec is a change of the spec, which runs the job again"
            ),
        )
    if field == "fromFile" and not limits.allow_secret_files:
        return f"fromFile: the file {name} is not allowed", "limits.allowSecretFiles: false"
    return None


CHECKS: tuple[Callable[[EffectiveSpec], Iterator[Diagnostic]], ...] = (
    image_is_given,
    one_entry_point,
    times_are_positive,
    timeout_is_capped,
    ttl_outlives_the_job,
    policies_are_allowed,
    images_are_allowed,
    namespace_is_allowed,
    container_names_differ,
    secrets_exist,
    variables_differ,
    labels_are_free,
    text_has_no_nul,
    file_paths_fit,
    from_file_stays_inside,
    secret_sources_are_allowed,
)


def check_spec(effective: EffectiveSpec) -> tuple[Diagnostic, ...]:
    """Findings of every rule; errors and warnings."""
    return tuple(problem for check in CHECKS for problem in check(effective))


def policy_list(value: str | list[str] | None) -> tuple[str, ...]:
    """A pull policy as written (one or a list) as a tuple; empty when none is given."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def matches_any(text: str, globs: tuple[str, ...]) -> bool:
    """Whether one of the globs matches all of `text`."""
    return any(fnmatchcase(text, glob) for glob in globs)


def _seconds(value: Any) -> float | None:
    try:
        return parse_duration(value)
    except ValueError:
        return None


def _is_written(effective: EffectiveSpec, name: str) -> bool:
    return any(name in document.data.get("spec", {}) for document in effective.layers)


def _sources(
    effective: EffectiveSpec,
) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    for name, source in effective.spec.get("secrets", {}).items():
        yield ("spec", "secrets", name), source
    for index, credential in enumerate(effective.spec.get("registryCredentials", ())):
        yield ("spec", "registryCredentials", index, "password"), credential["password"]


def _nul_paths(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, str):
        if "\0" in value:
            yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nul_paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nul_paths(item, (*path, index))
