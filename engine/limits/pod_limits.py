"""The limits that a pod can exceed: one function each, all in one visible tuple."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.api.checks import allowed_hint, matches_any
from engine.api.model import Limits
from engine.api.pod_fields import Path, Pod, containers, entries, field_of
from engine.durations import format_duration
from engine.wellknown import DEFAULT_SERVICE_ACCOUNT

_GRACE_PERIOD = "terminationGracePeriodSeconds"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ACCOUNTS = ("serviceAccountName", "serviceAccount")
"""The second one is the older name; the API server takes it where the first is missing."""
_MOUNT = "automountServiceAccountToken"
_SECRET_NAME = "secretName"  # noqa: S105 - a field's name
_SECRET_REFS = frozenset({"secret", "secretRef", "secretKeyRef", "nodePublishSecretRef"})
"""Fields of a pod that refer to a Secret by `name`, at any depth."""
_IDENTITIES = ("serviceAccountToken", "podCertificate")


@dataclass(frozen=True, slots=True)
class Excess:
    """A field of a pod that goes beyond a limit."""

    path: Path
    """The field, there or missing."""
    message: str
    """The problem, in words that follow the field's name."""
    hint: str
    """The limit."""


def images_are_allowed(pod: Pod, limits: Limits) -> Iterator[Excess]:
    """Images of containers, and those that are mounted as volumes."""
    allowed = limits.allowed_images
    for path, image, _ in () if allowed is None else _images(pod):
        if not matches_any(image or "", allowed or ()):
            hint = allowed_hint("allowedImages", allowed)
            yield Excess(path, f"{image or 'is missing, which'} is not allowed", hint)


def policies_are_allowed(pod: Pod, limits: Limits) -> Iterator[Excess]:
    """Their pull policies."""
    allowed = limits.allowed_pull_policies
    for path, _, policy in () if allowed is None else _images(pod):
        if policy and policy not in (allowed or ()):
            at = (*path[:-1], "imagePullPolicy" if path[-1] == "image" else "pullPolicy")
            hint = allowed_hint("allowedPullPolicies", allowed)
            yield Excess(at, f"{policy} is not allowed", hint)


def deadline_is_capped(pod: Pod, limits: Limits) -> Iterator[Excess]:
    """How long the pod may run, where that isn't the engine's own field."""
    yield from _capped(pod, ("spec", "activeDeadlineSeconds"), "maxTimeout", limits.max_timeout)


def grace_periods_are_capped(pod: Pod, limits: Limits) -> Iterator[Excess]:
    """How long the pod may take to stop: when it is deleted, or when a probe fails."""
    if limits.max_grace_period is None:
        return
    for path in (
        ("spec", _GRACE_PERIOD),
        *((*path, probe, _GRACE_PERIOD) for path, _ in containers(pod) for probe in _PROBES),
    ):
        yield from _capped(pod, path, "maxGracePeriod", limits.max_grace_period)


def service_account_is_allowed(pod: Pod, limits: Limits) -> Iterator[Excess]:
    """The account that the pod acts as: none, unless it names one or mounts a token."""
    allowed = limits.allowed_service_accounts
    for path, name in () if allowed is None else _accounts(pod):
        if not matches_any(name, allowed or ()):
            message = f"{name} is not allowed"
            if path[-1] not in _ACCOUNTS:
                message = f"gives it the service account {name}, which is not allowed"
            yield Excess(path, message, allowed_hint("allowedServiceAccounts", allowed))


def secrets_are_allowed(pod: Pod, limits: Limits) -> Iterator[Excess]:
    """The Secrets that it refers to, but for its own."""
    if limits.allowed_secrets is None:
        return
    own = field_of(pod, "metadata", "name")
    for path, name in _secrets(field_of(pod, "spec"), ("spec",)):
        if name != own and not matches_any(name, limits.allowed_secrets):
            hint = allowed_hint("allowedSecrets", limits.allowed_secrets)
            yield Excess(path, f"{name} is not allowed", hint)


POD_LIMITS: tuple[Callable[[Pod, Limits], Iterator[Excess]], ...] = (
    images_are_allowed,
    policies_are_allowed,
    deadline_is_capped,
    grace_periods_are_capped,
    service_account_is_allowed,
    secrets_are_allowed,
)


def _images(pod: Pod) -> Iterator[tuple[Path, Any, Any]]:
    """(path of the image, image, pull policy) of every container and of every image volume."""
    for path, container in containers(pod):
        yield (*path, "image"), container.get("image"), container.get("imagePullPolicy")
    for index, volume in entries(pod, "spec", "volumes"):
        image = field_of(volume, "image")
        if image is not None:
            path = ("spec", "volumes", index, "image", "reference")
            yield path, image.get("reference"), image.get("pullPolicy")


def _accounts(pod: Pod) -> Iterator[tuple[Path, str]]:
    for field in _ACCOUNTS:
        name = field_of(pod, "spec", field)
        if name:
            yield ("spec", field), name
            return
    if field_of(pod, "spec", _MOUNT) is not False:
        yield ("spec", _MOUNT), DEFAULT_SERVICE_ACCOUNT
    for index, volume in entries(pod, "spec", "volumes"):
        for number, source in entries(volume, "projected", "sources"):
            for kind in _IDENTITIES:
                if field_of(source, kind) is not None:
                    path = ("spec", "volumes", index, "projected", "sources", number, kind)
                    yield path, DEFAULT_SERVICE_ACCOUNT


def _secrets(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """(path, name) of each reference to a Secret in a part of a pod."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _secrets(item, (*path, index))
            if path[-1] == "imagePullSecrets" and field_of(item, "name"):
                yield (*path, index, "name"), item["name"]
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets(item, (*path, key))
            if key == _SECRET_NAME and item:
                yield (*path, key), item
            elif key in _SECRET_REFS and field_of(item, "name"):
                yield (*path, key, "name"), item["name"]


def _capped(pod: Pod, path: Path, limit: str, most: float | None) -> Iterator[Excess]:
    value = field_of(pod, *path)
    if value is not None and most is not None and value > math.ceil(most):
        longer = f"{format_duration(value)} is longer than {format_duration(most)}"
        yield Excess(path, longer, f"limits.{limit}")
