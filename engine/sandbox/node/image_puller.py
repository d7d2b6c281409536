"""From a container's image and pull policy to an image on the node, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.node.dependencies import pull_credentials
from engine.sandbox.node.images import PullError, invalid_format, parse_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.node.containers import Container
    from engine.sandbox.node.pod_state import PodState

SYNC = 1.0
"""Seconds until the kubelet syncs the Pod again and reports its back-off."""
_IMAGE_SIZE = 1


class ImagePuller:
    """Pulls the images of one Pod; the back-off is the Pod's own, so a new Pod pulls at once."""

    def __init__(self, state: PodState) -> None:
        self._state = state

    def fetch(self, container: Container, then: Callable[[], None]) -> None:
        """Have the image there, then go on; without it the container waits with its reason."""
        image, policy = container.image, container.spec["imagePullPolicy"]
        images = self._state.node.images
        logins, _ = pull_credentials(self._state.node.context.storage, self._state.pod)
        cached = images.is_cached(image) and images.may_use(image, logins)
        if parse_reference(image) is None:
            self._invalid(container)
        elif policy == "Never" and not cached:
            self._never(container, then)
        elif policy != "Always" and cached:
            words = f'Container image "{image}" already present on machine and can be accessed'
            words += " by the pod"
            self._state.record_event("Normal", "Pulled", words, container)
            self._done(container, then)
        else:
            self._state.record_event("Normal", "Pulling", f'Pulling image "{image}"', container)
            delay = self._state.node.pull_time
            self._state.later(container, delay, lambda: self._pull(container, then))

    def _done(self, container: Container, then: Callable[[], None]) -> None:
        container.image_id = f"sandbox://{container.image}"
        container.failures = 0 if not container.restarts else container.failures
        then()

    def _invalid(self, container: Container) -> None:
        why = (
            f'Failed to apply default image tag "{container.image}": couldn\'t parse image '
            f'name "{container.image}": {invalid_format(container.image)}'
        )
        container.wait("InvalidImageName", why)
        self._state.record_event("Warning", "InspectFailed", why, container)
        self._state.record_event("Warning", "Failed", "Error: InvalidImageName", container)
        self._state.publish()

    def _never(self, container: Container, then: Callable[[], None]) -> None:
        why = f'Container image "{container.image}" is not present with pull policy of Never'
        container.wait("ErrImageNeverPull", why)
        self._state.record_event("Warning", "ErrImageNeverPull", why, container)
        self._state.record_event("Warning", "Failed", "Error: ErrImageNeverPull", container)
        self._state.publish()
        self._state.later(container, 10.0, lambda: self.fetch(container, then))

    def _pull(self, container: Container, then: Callable[[], None]) -> None:
        state, image = self._state, container.image
        storage = state.node.context.storage
        credentials, missing = pull_credentials(storage, state.pod)
        if missing:
            words = (
                f"Unable to retrieve some image pull secrets ({', '.join(missing)}); attempting "
                "to pull the image may not succeed."
            )
            state.record_event("Warning", "FailedToRetrieveImagePullSecret", words)
        try:
            state.node.images.pull(image, credentials)
        except PullError as error:
            self._failed(container, str(error), then)
            return
        took = f"{int(state.node.pull_time * 1000)}ms"
        words = f'Successfully pulled image "{image}" in {took} ({took} including waiting)'
        words += f". Image size: {_IMAGE_SIZE} bytes."
        state.record_event("Normal", "Pulled", words, container)
        self._done(container, then)

    def _failed(self, container: Container, why: str, then: Callable[[], None]) -> None:
        """First the cause, then the back-off with the cause behind it, then the next try."""
        state, image = self._state, container.image
        container.wait("ErrImagePull", why)
        state.record_event("Warning", "Failed", f'Failed to pull image "{image}": {why}', container)
        state.record_event("Warning", "Failed", "Error: ErrImagePull", container)
        state.publish()
        delay = container.back_off()

        def back_off() -> None:
            words = f'Back-off pulling image "{image}"'
            container.wait("ImagePullBackOff", f"{words}: ErrImagePull: {why}")
            state.record_event("Normal", "BackOff", words, container)
            state.record_event("Warning", "Failed", "Error: ImagePullBackOff", container)
            state.publish()
            state.later(container, delay, lambda: self.fetch(container, then))

        state.later(container, SYNC, back_off)
