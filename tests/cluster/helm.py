"""Helm, as the tests of the chart use it: built once from its Go module, as the cluster is."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cluster import build
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.fixtures import do_without
from tests.cluster.packages import Say
from tests.cluster.settings import Settings

CHART = Path(__file__).parents[2] / "deploy" / "chart"
LEAST = Path(__file__).parents[1] / "deploy" / "least.yaml"
"""Without these values there is no release: where jobs run has to be said."""
OLDEST = "--kube-version=1.30.0"
"""Where there is no cluster to ask, helm has to be told."""


@dataclass(frozen=True, slots=True)
class Helm:
    """The program, and what it makes of our chart."""

    program: Path

    @classmethod
    def find(cls, say: Say = lambda _line: None) -> Helm:
        """The one that ENGINE_TEST_HELM names, else our own, which is built first if need be.

        Errors: ClusterUnavailable where it can't be built.
        """
        if named := os.environ.get("ENGINE_TEST_HELM"):
            return cls(Path(named))
        made = build.ensure(Settings.from_environment(), say, build.tools())
        return cls(made["helm"] / "helm")

    def run(
        self, *arguments: str, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Neither plugins nor repositories of the machine count, and nothing is left on it."""
        with tempfile.TemporaryDirectory(prefix="helm-") as home:
            environment = {"PATH": os.environ["PATH"], "HOME": home}
            if kubeconfig is not None:
                environment["KUBECONFIG"] = str(kubeconfig)
            return subprocess.run(
                [self.program, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )

    def render(
        self,
        *values: Path,
        settings: Sequence[str] = (),
        release: str = "engine",
        namespace: str = "engine",
    ) -> str:
        """What the chart makes of values files, and of settings as those of `--set-json`."""
        files = [f"--values={path}" for path in (LEAST, *values)]
        given = [f"--set-json={setting}" for setting in settings]
        options = [f"--namespace={namespace}", OLDEST, *files, *given]
        done = self.run("template", release, str(CHART), *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def template(self, *values: Path, **given: Any) -> list[dict[str, Any]]:
        """The documents of `render`."""
        loaded = YAML(typ="safe", pure=True).load_all(self.render(*values, **given))
        return [document for document in loaded if document]


_FOUND = pytest.StashKey[Helm | str]()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Have it before the first test begins: no test's time limit allows for building it."""
    asked = any("helm" in getattr(item, "fixturenames", ()) for item in session.items)
    if asked and not session.config.option.collectonly:
        found: Helm | str
        try:
            found = Helm.find()
        except ClusterUnavailable as error:
            found = str(error).partition("\n")[0]
        session.config.stash[_FOUND] = found
    return (yield)


@pytest.fixture(scope="session")
def helm(pytestconfig: pytest.Config) -> Helm:
    """The real helm. Skips where it can't be had."""
    found = pytestconfig.stash[_FOUND]
    if isinstance(found, str):
        do_without(found)
    return found
