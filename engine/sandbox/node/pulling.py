"""From a container's image and pull policy to an image on the node, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.node.images import PullError, invalid_format, parse_reference
from engine.sandbox.node.needs import pull_credentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.node.containers import Container
    from engine.sandbox.node.worker import Worker

SYNC = 1.0
"""Seconds until the kubelet looks at the Pod again and tells of its back-off."""
_IMAGE_SIZE = 1


class Puller:
    """Pulls the images of one Pod; the back-off is the Pod's own, so a new Pod pulls at once."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def fetch(self, container: Container, then: Callable[[], None]) -> None:
        """Have the image there, then go on; without it the container waits with its reason."""
        image, policy = container.image, container.spec["imagePullPolicy"]
        cached = self._worker.host.images.is_cached(image)
        if parse_reference(image) is None:
            self._invalid(container)
        elif policy == "Never" and not cached:
            self._never(container, then)
        elif policy != "Always" and cached:
            words = f'Container image "{image}" already present on machine and can be accessed'
            words += " by the pod"
            self._worker.note("Normal", "Pulled", words, container)
            self._done(container, then)
        else:
            self._worker.note("Normal", "Pulling", f'Pulling image "{image}"', container)
            delay = self._worker.host.pull_time
            self._worker.later(container, delay, lambda: self._pull(container, then))

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
        self._worker.note("Warning", "InspectFailed", why, container)
        self._worker.note("Warning", "Failed", "Error: InvalidImageName", container)
        self._worker.publish()

    def _never(self, container: Container, then: Callable[[], None]) -> None:
        why = f'Container image "{container.image}" is not present with pull policy of Never'
        container.wait("ErrImageNeverPull", why)
        self._worker.note("Warning", "ErrImageNeverPull", why, container)
        self._worker.note("Warning", "Failed", "Error: ErrImageNeverPull", container)
        self._worker.publish()
        self._worker.later(container, 10.0, lambda: self.fetch(container, then))

    def _pull(self, container: Container, then: Callable[[], None]) -> None:
        worker, image = self._worker, container.image
        storage = worker.host.context.storage
        credentials, missing = pull_credentials(storage, worker.pod)
        if missing:
            words = (
                f"Unable to retrieve some image pull secrets ({', '.join(missing)}); attempting "
                "to pull the image may not succeed."
            )
            worker.note("Warning", "FailedToRetrieveImagePullSecret", words)
        try:
            worker.host.images.pull(image, credentials)
        except PullError as error:
            self._failed(container, str(error), then)
            return
        took = f"{int(worker.host.pull_time * 1000)}ms"
        words = f'Successfully pulled image "{image}" in {took} ({took} including waiting)'
        words += f". Image size: {_IMAGE_SIZE} bytes."
        worker.note("Normal", "Pulled", words, container)
        self._done(container, then)

    def _failed(self, container: Container, why: str, then: Callable[[], None]) -> None:
        """First the cause, then the back-off with the cause behind it, then the next try."""
        worker, image = self._worker, container.image
        container.wait("ErrImagePull", why)
        worker.note("Warning", "Failed", f'Failed to pull image "{image}": {why}', container)
        worker.note("Warning", "Failed", "Error: ErrImagePull", container)
        worker.publish()
        delay = container.back_off()

        def back_off() -> None:
            words = f'Back-off pulling image "{image}"'
            container.wait("ImagePullBackOff", f"{words}: ErrImagePull: {why}")
            worker.note("Normal", "BackOff", words, container)
            worker.note("Warning", "Failed", "Error: ImagePullBackOff", container)
            worker.publish()
            worker.later(container, delay, lambda: self.fetch(container, then))

        worker.later(container, SYNC, back_off)
