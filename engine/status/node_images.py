"""Which images a node has, by its status.

By default the kubelet names the 50 largest, and a new one within a minute.
"""

from collections.abc import Mapping
from typing import Any

from engine.wellknown import HOSTNAME

_HUB, _LIBRARY = "docker.io", "library"


def full_image_name(image: str) -> str:
    """The image with the registry, folder and tag that may be left out: nodes name it so.

    Beside a digest a tag says nothing.
    """
    name, _, digest = image.partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    registry, _, path = f"{folder}{slash}{last}".partition("/")
    if not path or not ("." in registry or ":" in registry or registry == "localhost"):
        registry, path = _HUB, f"{folder}{slash}{last}"
    if registry == _HUB and "/" not in path:
        path = f"{_LIBRARY}/{path}"
    return f"{registry}/{path}@{digest}" if digest else f"{registry}/{path}:{tag or 'latest'}"


def has_image(node: Mapping[str, Any], image: str) -> bool:
    """Whether the node has the image with this full name."""
    images = (node.get("status") or {}).get("images") or ()
    return any(full_image_name(name) == image for one in images for name in one.get("names") or ())


def usable_host(node: Mapping[str, Any]) -> str:
    """The node's host name, as its label has it; "" unless it is ready and takes pods."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    if not ready or (node.get("spec") or {}).get("unschedulable"):
        return ""
    host: str = (node["metadata"].get("labels") or {}).get(HOSTNAME, "")
    return host
