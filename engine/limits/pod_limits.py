"""The limits that a pod can exceed, all in `exceeded`, with what each of them judges."""

import math
from collections.abc import Iterator
from typing import Any

from engine.api.checks import allowed_hint, matches_any
from engine.api.model import Limits
from engine.api.pod_fields import Path, Pod, containers, entries, field_of, walk
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


_Value = tuple[Path, str, str]
"""(path, value, problem) of a field; the problem follows the field's name in a message."""


def exceeded(pod: Pod, limits: Limits) -> Iterator[tuple[Path, str, str]]:
    """(path, problem, limit) of each field of a pod, there or missing, beyond a limit."""
    for allowed, name, values in (
        (limits.allowed_images, "allowedImages", images),
        (limits.allowed_pull_policies, "allowedPullPolicies", policies),
        (limits.allowed_service_accounts, "allowedServiceAccounts", service_accounts),
        (limits.allowed_secrets, "allowedSecrets", secrets),
    ):
        for path, value, words in () if allowed is None else values(pod):
            if not matches_any(value, allowed or ()):
                yield path, words, allowed_hint(name, allowed)
    deadline, grace = ("spec", "activeDeadlineSeconds"), ("spec", _GRACE_PERIOD)
    probes = ((*path, probe, _GRACE_PERIOD) for path, _ in containers(pod) for probe in _PROBES)
    for most, name, paths in (
        (limits.max_timeout, "maxTimeout", (deadline,)),
        (limits.max_grace_period, "maxGracePeriod", (grace, *probes)),
    ):
        for path in () if most is None else paths:
            value = field_of(pod, *path)
            if value is not None and value > math.ceil(most or 0):
                words = f"{format_duration(value)} is longer than {format_duration(most or 0)}"
                yield path, words, f"limits.{name}"


def images(pod: Pod) -> Iterator[_Value]:
    """Images of containers, and those that are mounted as volumes."""
    for path, image, _ in _images(pod):
        yield path, image or "", f"{image or 'is missing, which'} is not allowed"


def policies(pod: Pod) -> Iterator[_Value]:
    """Their pull policies."""
    for path, _, policy in _images(pod):
        if policy:
            at = (*path[:-1], "imagePullPolicy" if path[-1] == "image" else "pullPolicy")
            yield at, policy, f"{policy} is not allowed"


def _images(pod: Pod) -> Iterator[tuple[Path, Any, Any]]:
    """(path of the image, image, pull policy) of every container and of every image volume."""
    for path, container in containers(pod):
        yield (*path, "image"), container.get("image"), container.get("imagePullPolicy")
    for index, volume in entries(pod, "spec", "volumes"):
        image = field_of(volume, "image")
        if image is not None:
            path = ("spec", "volumes", index, "image", "reference")
            yield path, image.get("reference"), image.get("pullPolicy")


def service_accounts(pod: Pod) -> Iterator[_Value]:
    """The account that the pod acts as: none, unless it names one or mounts a token."""
    for field in _ACCOUNTS:
        name = field_of(pod, "spec", field)
        if name:
            yield ("spec", field), name, f"{name} is not allowed"
            return
    account = DEFAULT_SERVICE_ACCOUNT
    words = f"gives it the service account {account}, which is not allowed"
    if field_of(pod, "spec", _MOUNT) is not False:
        yield ("spec", _MOUNT), account, words
    for index, volume in entries(pod, "spec", "volumes"):
        for number, source in entries(volume, "projected", "sources"):
            for kind in _IDENTITIES:
                if field_of(source, kind) is not None:
                    path = ("spec", "volumes", index, "projected", "sources", number, kind)
                    yield path, account, words


def secrets(pod: Pod) -> Iterator[_Value]:
    """The Secrets that it refers to, but for its own."""
    own = field_of(pod, "metadata", "name")
    for path, name in walk(field_of(pod, "spec"), ("spec",)):
        is_reference = path[-1] == "name" and (
            path[-2] in _SECRET_REFS or path[-3:-2] == ("imagePullSecrets",)
        )
        if (is_reference or path[-1] == _SECRET_NAME) and name and name != own:
            yield path, name, f"{name} is not allowed"
