"""Pin another version of a Kubernetes release: its module written anew."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import go_toolchain
from tests.cluster.build import MODULES
from tests.cluster.errors import ClusterUnavailable

if TYPE_CHECKING:
    from tests.cluster.packages import Say

_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet")
_TOOL_LINES_SINCE = (1, 24)


def lock(version: str, cache: Path, say: Say) -> Path:
    """Write go.mod and go.sum for a version such as 1.36.3; returns the folder of its release.

    Kubernetes requires its staging modules at v0.0.0 and replaces them by folders of its own tree.
    Outside that tree each is replaced by the version that was published with it.
    Errors: ClusterUnavailable with the words of `go`.
    """
    parts = re.fullmatch(r"1\.(\d+)\.(\d+)", version)
    if parts is None:
        raise ClusterUnavailable(f"{version!r} is no version of Kubernetes such as 1.36.3")
    minor, patch = parts.groups()
    folder = MODULES / f"kubernetes-1.{minor}"
    folder.mkdir(exist_ok=True)
    toolchain = go_toolchain.find(cache, _TOOL_LINES_SINCE, say)
    said = _go(toolchain, folder, "mod", "download", "-json", f"k8s.io/kubernetes@v{version}")
    original = Path(json.loads(said)["GoMod"]).read_text()
    (folder / "go.mod").write_text(_module(original, version, f"v0.{minor}.{patch}"))
    (folder / "go.sum").unlink(missing_ok=True)
    _go(toolchain, folder, "mod", "tidy")
    return folder


def _module(original: str, version: str, staging: str) -> str:
    """With the runtime defaults of the Go that Kubernetes itself asks for."""
    asked = re.search(r"^go (\d+)\.(\d+)", original, re.MULTILINE)
    names = re.findall(r"^\s*(k8s\.io/\S+) => \./staging", original, re.MULTILINE)
    if asked is None or not names:
        raise ClusterUnavailable(f"Kubernetes {version} has a go.mod of another kind")
    own = (int(asked[1]), int(asked[2]))
    lines = ["module engine.test/kubernetes", "", "go {}.{}.0".format(*max(own, _TOOL_LINES_SINCE))]
    if own < _TOOL_LINES_SINCE:
        lines += ["", "godebug default=go{}.{}".format(*own)]
    lines += ["", f"require k8s.io/kubernetes v{version}"]
    lines += ["", "tool (", *(f"\tk8s.io/kubernetes/cmd/{name}" for name in _PROGRAMS), ")"]
    lines += ["", "replace (", *(f"\t{name} => {name} {staging}" for name in names), ")", ""]
    return "\n".join(lines)


def _go(toolchain: go_toolchain.Toolchain, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [toolchain.program, *arguments],
        cwd=folder,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ClusterUnavailable(f"go {' '.join(arguments[:2])}: {last}")
    return done.stdout
