"""Whether a container that ended is started again, and what the kubelet says meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sandbox.node.containers import Container
    from engine.sandbox.store import Entry


def may_restart(container: Container, policy: str) -> bool:
    """Sidecars always; init containers only until they have succeeded."""
    if container.is_sidecar:
        return True
    if container.init and container.succeeded:
        return False
    return policy == "Always" or (policy == "OnFailure" and not container.succeeded)


def back_off_words(pod: Entry, container: str, delay: float) -> str:
    return (
        f"back-off {int(delay)}s restarting failed container={container} "
        f"pod={pod.name}_{pod.namespace}({pod.uid})"
    )
