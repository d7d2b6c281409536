"""Container images from nothing: a layer, a configuration and a manifest, pushed to a registry.

Written here rather than with umoci and skopeo because a test that needs its own image gets it in
milliseconds this way.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.http import Reply, request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True, slots=True)
class Image:
    """What a registry needs to serve an image."""

    layers: tuple[bytes, ...]
    config: bytes

    @classmethod
    def of(
        cls,
        *layers: bytes,
        entrypoint: Sequence[str] = (),
        command: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        env: Sequence[str] = ("PATH=/bin",),
        user: str = "",
    ) -> Image:
        config = {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(
                platform.machine(), platform.machine()
            ),
            "os": "linux",
            "config": {
                "Env": list(env),
                "User": user,
                "Entrypoint": list(entrypoint),
                "Cmd": list(command),
                "Labels": dict(labels or {}),
            },
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
        }
        return cls(layers, json.dumps(config).encode())

    @property
    def manifest(self) -> bytes:
        return json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "config": _descriptor(_CONFIG, self.config),
                "layers": [_descriptor(_LAYER, layer) for layer in self.layers],
            }
        ).encode()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer(files: Mapping[str, bytes], links: Mapping[str, str], folders: Sequence[str]) -> bytes:
    """A tar archive of executable files, symbolic links and folders everybody may write to."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in folders:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            archive.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
        for name, destination in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, destination
            archive.addfile(entry)
    return target.getvalue()


def push(image: Image, ref: str, account: tuple[str, str] | None = None) -> str:
    """Push to `host/name:tag` and return the manifest's digest.

    Errors: OSError when the registry can't be reached or refuses.
    """
    host, name, tag = split(ref)
    base = f"http://{host}/v2/{name}"
    for blob in (*image.layers, image.config):
        if request("HEAD", f"{base}/blobs/{digest(blob)}", account=account).code == 200:
            continue
        begun = _expect(request("POST", f"{base}/blobs/uploads/", account=account), 202)
        place = begun.headers["Location"]
        url = f"{place}{'&' if '?' in place else '?'}digest={digest(blob)}"
        octets = {"Content-Type": "application/octet-stream"}
        _expect(request("PUT", url, body=blob, headers=octets, account=account), 201)
    kind = {"Content-Type": _MANIFEST}
    url = f"{base}/manifests/{tag}"
    _expect(request("PUT", url, body=image.manifest, headers=kind, account=account), 201)
    return digest(image.manifest)


def drop(ref: str, account: tuple[str, str] | None = None) -> None:
    """Delete the manifest: the registry answers `manifest unknown` from here on."""
    host, name, tag = split(ref)
    base = f"http://{host}/v2/{name}/manifests"
    accept = {"Accept": _MANIFEST}
    found = _expect(request("HEAD", f"{base}/{tag}", headers=accept, account=account), 200)
    known = found.headers["Docker-Content-Digest"]
    _expect(request("DELETE", f"{base}/{known}", account=account), 202)


def split(ref: str) -> tuple[str, str, str]:
    host, _, rest = ref.partition("/")
    name, _, tag = rest.rpartition(":")
    return host, name, tag


def busybox_layer(applets: Sequence[str], programs: Sequence[Path] = ()) -> bytes:
    files = {f"bin/{program.name}": program.read_bytes() for program in programs}
    busybox = {"bin/busybox": Path("/bin/busybox").read_bytes()}
    links = {f"bin/{name}": "busybox" for name in applets}
    return layer({**busybox, **files}, links, ("tmp",))


def _descriptor(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": digest(content), "size": len(content)}


def _expect(reply: Reply, status: int) -> Reply:
    if reply.code != status:
        detail = str(reply.body).strip()
        raise OSError(f"the registry answered {reply.code} instead of {status}: {detail}")
    return reply
