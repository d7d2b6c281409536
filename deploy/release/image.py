"""The image as an OCI archive: built by `make image`, else of what this machine has.

Without a builder, or where the base can't be pulled, the archive holds what the Dockerfile lays
over its base, on this machine's own Python: the same contents, for a registry of one's own. Who
names BASE gets that base or nothing.
"""

import gzip
import io
import json
import os
import shlex
import subprocess
import tarfile
from pathlib import Path
from string import Template

from deploy.release.errors import ReleaseRefusedError
from deploy.release.tree import ROOT, revision
from engine import __version__
from tests.cluster.engine_image import engine_image, final_stage
from tests.cluster.oci import Image, digest
from tests.cluster.packages import Say

NAME = f"engine-{__version__}.oci.tar"


def archive(out: Path, base: str, say: Say) -> Path:
    """Errors: ReleaseRefusedError where `base` is named and can't be built on."""
    target = out / NAME
    command = ["make", "--no-print-directory", "image", f"ARCHIVE={target}"]
    command += [f"IMAGE=engine:{__version__}", f"BASE={base}"]
    done = subprocess.run(
        command, cwd=ROOT, env=_own_make(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return target
    cause = _cause(done.stdout)
    if base:
        raise ReleaseRefusedError(f"the image can't be built on {base}: {cause}")
    target.unlink(missing_ok=True)
    say(f"the image stands on this machine's own Python, as none can be built on a base: {cause}")
    target.write_bytes(oci_archive(_labelled(engine_image()), f"engine:{__version__}"))
    return target


def _own_make() -> dict[str, str]:
    makes = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")
    return {name: value for name, value in os.environ.items() if name not in makes}


def _cause(output: str) -> str:
    """A builder's error is its last line, before what make says of it."""
    lines = [line for line in output.splitlines() if line and not line.startswith("make")]
    return lines[-1].strip() if lines else "make image said nothing"


def _labelled(image: Image) -> Image:
    """With the Dockerfile's labels, and the base that it really has."""
    text = Template(final_stage()["LABEL"]).substitute(VERSION=__version__, REVISION=revision())
    labels = dict(item.split("=", 1) for item in shlex.split(text))
    labels["org.opencontainers.image.base.name"] = "scratch"
    config = json.loads(image.config)
    config["config"]["Labels"] = labels
    return Image(image.layers, json.dumps(config).encode())


def oci_archive(image: Image, name: str) -> bytes:
    """An OCI image layout in a tar archive, as skopeo, podman, buildah and containerd read it."""
    layers = [gzip.compress(layer, compresslevel=6, mtime=0) for layer in image.layers]
    manifest = json.loads(image.manifest)
    for described, layer in zip(manifest["layers"], layers, strict=True):
        described["mediaType"] += "+gzip"
        described |= {"digest": digest(layer), "size": len(layer)}
    top = json.dumps(manifest).encode()
    described = {"mediaType": manifest["mediaType"], "digest": digest(top), "size": len(top)}
    described["annotations"] = {"org.opencontainers.image.ref.name": name}
    files = {
        "oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode(),
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [described]}).encode(),
    }
    for blob in (top, image.config, *layers):
        files[f"blobs/{digest(blob).replace(':', '/')}"] = blob
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as packed:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    return target.getvalue()
