"""What the API server or a node would refuse once the job is started, and can be seen before.

Warnings: such a job fails by itself, in the server's own words, and the folder that holds its spec
has always been reconciled.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.api.effective import EffectiveSpec
from engine.api.schema_messages import shorten, suggest
from engine.errors import Diagnostic
from engine.kubeschema.quantity import amount

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?"
_IMAGE = re.compile(
    rf"(?:(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::\d+)?/)?{_PART}(?:/{_PART})*"
    r"(?::\w[-.\w]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
"""As the distribution's reference grammar has it."""
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_ROUNDED = 1 + 1e-9
"""700m and 0.7 are one amount."""


def images_can_be_pulled(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Images are references: a node calls others InvalidImageName."""
    for _, path, container in effective.containers():
        image = container.get("image")
        if image is None or _IMAGE.fullmatch(image):
            continue
        meant = "".join(image.split()).lower()
        hint = f"did you mean {meant}?" if _IMAGE.fullmatch(meant) else "[REGISTRY/]NAME[:TAG]"
        told = f"no node can pull the image {shorten(repr(image))}"
        yield effective.warning(told, shorten(hint), *path, "image")


def service_account_can_exist(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Its name is one that an object can have."""
    name = effective.spec.get("serviceAccountName")
    if name and not _OBJECT_NAME.fullmatch(name):
        told = f"no service account can be named {shorten(repr(name))}"
        hint = "lower-case letters, digits, '-' and '.'"
        yield effective.warning(told, hint, "spec", "serviceAccountName")


def resources_are_known(effective: EffectiveSpec) -> Iterator[Diagnostic]:
    """Resources are those of Kubernetes, or have a domain; no container asks beyond its limit."""
    for _, path, container in effective.containers():
        resources: Mapping[str, Any] = container.get("resources") or {}
        for field in ("requests", "limits"):
            for name in resources.get(field) or {}:
                if name in _COMPUTE or name.startswith("hugepages-") or "/" in name:
                    continue
                told, hint = (
                    f"the server knows no resource {shorten(name)}",
                    suggest(name, _COMPUTE),
                )
                yield effective.warning(told, hint, *path, "resources", field, name)
        limits = resources.get("limits") or {}
        for name, asked in (resources.get("requests") or {}).items():
            if amount(limits.get(name)) * _ROUNDED < amount(asked) < math.inf:
                told = (
                    f"the request of {shorten(name)}, {asked}, is beyond its limit, {limits[name]}"
                )
                yield effective.warning(told, "", *path, "resources", "requests", name)
