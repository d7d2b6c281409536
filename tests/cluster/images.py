"""Images for tests: made, pushed, pulled to the node, and dropped on either side."""

from __future__ import annotations

import subprocess
import time
import uuid
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from tests.cluster import oci
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.files import exclusive

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.cluster.cluster import Cluster
    from tests.cluster.node import Node
    from tests.cluster.registry import Registry

Where = Literal["open", "private"]


@dataclass(frozen=True, slots=True)
class Images:
    """Every image holds the same busybox; each is another image with a name of its own."""

    node: Node
    open: Registry
    private: Registry
    busybox: str
    """A shared image with a shell and every applet; tests don't drop this one."""

    @classmethod
    def of(cls, cluster: Cluster) -> Images:
        if not (cluster.node and cluster.open_registry and cluster.private_registry):
            raise ClusterUnavailable("this cluster has no node and registries in our hands")
        busybox = f"{cluster.open_registry.host}/busybox:1"
        _push(busybox, cluster.open_registry, (), ("sh",))
        return cls(cluster.node, cluster.open_registry, cluster.private_registry, busybox)

    def build(
        self,
        *,
        tag: str = "latest",
        registry: Where = "open",
        entrypoint: Sequence[str] = (),
        command: Sequence[str] = ("sh",),
        programs: Sequence[Path] = (),
    ) -> str:
        """Push a new image and return its reference, which no other image has.

        `programs` are static ones of this machine that it has in /bin besides the shared busybox.
        """
        ref = self._fresh(registry, "test", tag)
        _push(ref, self._home(ref), entrypoint, command, programs)
        return ref

    def absent(self, registry: Where = "open") -> str:
        """A reference that no registry has ever had."""
        return self._fresh(registry, "absent", "latest")

    def drop_from_registry(self, ref: str) -> None:
        """The registry answers `not found` from here on; the node keeps what it has."""
        oci.drop(ref, self._home(ref).account)

    def pull_to_node(self, ref: str) -> None:
        """The node has it from here on, whatever becomes of the registry."""
        account = self._home(ref).account
        user = [f"--user={':'.join(account)}"] if account else []
        self._ctr("images", "pull", "--plain-http", *user, ref)
        deadline = time.monotonic() + 5
        while len(self._names(ref)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)

    def drop_from_node(self, ref: str) -> None:
        """The registry keeps it; the node forgets it under each of its names."""
        if names := self._names(ref):
            self._ctr("images", "remove", *names)
            time.sleep(0.2)  # the kubelet's view of the images follows containerd's events

    def on_node(self, ref: str) -> bool:
        return bool(self._names(ref))

    def _names(self, ref: str) -> list[str]:
        """By reference and, once the kubelet's side knows the image, also by id and by digest."""
        rows = [row.split() for row in self._ctr("images", "list").splitlines()[1:]]
        digests = {digest for name, _, digest, *_ in rows if name == ref}
        return [name for name, _, digest, *_ in rows if digest in digests]

    def _ctr(self, *arguments: str) -> str:
        done = subprocess.run(
            self.node.ctr(*arguments), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise OSError(f"ctr {' '.join(arguments[:2])}: {done.stderr.strip()}")
        return done.stdout

    def _fresh(self, registry: Where, prefix: str, tag: str) -> str:
        host = (self.private if registry == "private" else self.open).host
        return f"{host}/{prefix}-{uuid.uuid4().hex[:10]}:{tag}"

    def _home(self, ref: str) -> Registry:
        return self.private if ref.startswith(f"{self.private.host}/") else self.open


def _push(
    ref: str,
    registry: Registry,
    entrypoint: Sequence[str],
    command: Sequence[str],
    programs: Sequence[Path] = (),
) -> None:
    """The label makes the content differ from image to image, hence also its digest.

    One after the other: of two that push the same layer at once, the registry fails one.
    """
    image = oci.Image.of(
        _layer(tuple(programs)),
        entrypoint=entrypoint,
        command=command,
        labels={"engine-test/ref": ref},
    )
    with exclusive(registry.component.record.with_suffix(".push")):
        oci.push(image, ref, registry.account)


@cache
def _layer(programs: tuple[Path, ...]) -> bytes:
    listed = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True)
    applets = [name for name in listed.stdout.split() if name != "busybox"]
    return oci.busybox_layer(applets, programs)
